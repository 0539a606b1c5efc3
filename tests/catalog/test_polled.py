from __future__ import annotations

from tests.catalog.given import Given
from trickle.catalog import Catalog, Kind, PolledKind, ReplicaStatus, pins, polled, relations


def test_a_polled_source_is_read_then_followed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        relation = given.table(tx, "prices", Kind.REPLICA)
        pins.add(tx, relation.id, given.now)
        polled.add(tx, relation.id, kind=PolledKind.FILES, definition={"path": "/in"}, schedule="5m")
        (found,) = polled.listing(tx)
        assert (found.status, found.definition, found.polled_at) == (ReplicaStatus.LOADING, {"path": "/in"}, None)
        polled.update(tx, relation.id, status=ReplicaStatus.ACTIVE, polled_at=given.now)
        again = polled.find(tx, relation.id)
        assert again is not None
        assert (again.status, again.polled_at, again.pin.version) == (ReplicaStatus.ACTIVE, given.now, None)
        relations.remove(tx, relation.id)
        assert polled.listing(tx) == []
