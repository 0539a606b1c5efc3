from __future__ import annotations

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, Kind, ReplicaStatus, databases, pins, relations
from trickle.errors import ConcurrentModification, DuplicateName, InvalidOption

DSN = "postgresql://ada:s3cret@db/shop"


def test_a_database_has_a_name_of_its_own(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        made = databases.add(tx, "Shop", dsn=DSN, cdc_mode="auto", options={"schema": "c"}, now=given.now)
        assert databases.get(tx, "shop") == made
        assert "s3cret" not in repr(made)
        with pytest.raises(DuplicateName):
            databases.add(tx, "SHOP", dsn=DSN, cdc_mode="auto", options={}, now=given.now)
        with pytest.raises(InvalidOption, match="'ship'"):
            databases.get(tx, "ship")
        databases.update(tx, made.id, last_error="gone", last_error_at=given.now)
        assert databases.get(tx, "shop").last_error == "gone"
        databases.remove(tx, made.id)
        assert databases.listing(tx) == []


def test_a_replica_is_loaded_then_follows(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        shop = databases.add(tx, "shop", dsn=DSN, cdc_mode="auto", options={}, now=given.now)
        for number, name in enumerate(("shop.a", "shop.b")):
            relation = given.table(tx, name, Kind.REPLICA)
            pins.add(tx, relation.id, given.now)
            databases.add_replica(tx, relation.id, shop.id, oid=number, schema="public", table=name, shape={"x": 1})
        first, second = databases.replicas(tx, shop.id)
        assert (first.status, first.pin.version, first.shape) == (ReplicaStatus.LOADING, None, {"x": 1})
        databases.update_replica(tx, first.relation.id, status=ReplicaStatus.ACTIVE, problem=None, shape={"x": 2})
        assert databases.replica_of(tx, first.relation.id).shape == {"x": 2}
        with pytest.raises(DuplicateName, match="attached already"):
            databases.add_replica(
                tx, given.table(tx, "c").id, shop.id, oid=first.oid, schema="public", table="a", shape={}
            )
        databases.mark_lost(tx, first.relation.id, "why")
        relations.remove(tx, second.relation.id)
        (left,) = databases.replicas(tx)
        assert (left.status, left.problem) == (ReplicaStatus.LOADING, "why")
        with pytest.raises(ConcurrentModification):
            databases.update_replica(tx, second.relation.id, problem=None)
