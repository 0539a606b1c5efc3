from __future__ import annotations

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, publications, relations, streams
from trickle.errors import ConcurrentModification

DSN = "postgresql://ada:s3cret@db/shop"


def test_a_publication_is_behind_until_it_shows_what_readers_see(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        stream = given.stream(tx, "totals")
        other = given.stream(tx, "others")
        made = publications.add(
            tx, stream.relation.id, uid="a" * 32, dsn=DSN, schema="public", table="T", now=given.now
        )
        assert "s3cret" not in repr(made)
        assert publications.are_there(tx, stream.relation.id)
        assert not publications.are_there(tx, other.relation.id)
        streams.update(tx, stream.relation.id, now=given.now, version=4)
        assert publications.behind(tx) == [], "its first copy is not complete"
        publications.update(tx, made.id, version=3, published_at=given.now)
        assert [one.uid for one in publications.behind(tx)] == [made.uid]
        publications.update(tx, made.id, version=4, shown_uid="of another incarnation")
        assert [(one.uid, one.is_current) for one in publications.behind(tx)] == [(made.uid, False)]
        publications.update(tx, made.id, shown_uid=stream.relation.uid)
        assert publications.behind(tx) == []
        publications.update(tx, made.id, last_error="gone", last_error_at=given.now)
        (found,) = publications.behind(tx)
        assert (found.version, found.stream_version, found.last_error) == (4, 4, "gone")
        assert publications.listing(tx, [other.relation.id]) == []


def test_it_goes_with_its_stream_table(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        stream = given.stream(tx, "totals")
        add = {"uid": "a", "dsn": DSN, "schema": "public", "table": "t", "now": given.now}
        made = publications.add(tx, stream.relation.id, **add)  # type: ignore[arg-type]  # values of several types
        again = publications.add(tx, stream.relation.id, **{**add, "uid": "b"})  # type: ignore[arg-type]  # the same
        publications.remove(tx, made.id)
        with pytest.raises(ConcurrentModification):
            publications.get(tx, made.id)
        relations.remove(tx, stream.relation.id)
        publications.update(tx, again.id, version=1)
        assert publications.listing(tx) == []
