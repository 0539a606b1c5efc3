from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from tests.catalog.given import Given
from trickle.catalog import Catalog, Database, Hosted, RefreshMode, databases, hosted, relations, streams
from trickle.errors import ConcurrentModification


@pytest.fixture
def shop(catalog: Catalog, given: Given) -> Database:
    with catalog.write() as tx:
        return databases.add(tx, "shop", dsn="postgresql://db/shop", cdc_mode="auto", options={}, now=given.now)


def noted(tx: Session, shop: Database, given: Given, table: str = "totals") -> Hosted:
    return hosted.add(tx, shop.id, schema="public", table=table, columns={"a": 1}, text="SELECT 1", now=given.now)


def test_it_belongs_to_nobody_until_it_is_linked(catalog: Catalog, given: Given, shop: Database) -> None:
    with catalog.write() as tx:
        made = noted(tx, shop, given)
        assert (made.relation_id, made.columns, made.text) == (None, {"a": 1}, "SELECT 1")
        assert hosted.left(tx) == [made]
        stream = given.stream(tx, "totals", refresh_mode=RefreshMode.IMMEDIATE)
        hosted.link(tx, made.id, stream.relation.id)
        (found,) = hosted.of(tx, [stream.relation.id, 99]).values()
        assert (found.id, found.relation_id) == (made.id, stream.relation.id)
        assert hosted.left(tx, shop.id) == []
        hosted.redefine(tx, made.id, columns={"b": 2}, text="SELECT 2")
        assert [(one.columns, one.text) for one in hosted.listing(tx, shop.id)] == [({"b": 2}, "SELECT 2")]
        with pytest.raises(ConcurrentModification):
            hosted.link(tx, 12345, stream.relation.id)


def test_what_is_dropped_is_left_to_be_removed(catalog: Catalog, given: Given, shop: Database) -> None:
    with catalog.write() as tx:
        made = noted(tx, shop, given)
        stream = given.stream(tx, "totals", refresh_mode=RefreshMode.IMMEDIATE)
        hosted.link(tx, made.id, stream.relation.id)
    with catalog.write() as tx:
        relations.remove(tx, stream.relation.id)
    with catalog.write() as tx:
        assert [one.id for one in hosted.left(tx)] == [made.id]
        hosted.remove(tx, made.id)
        assert hosted.listing(tx) == []
        databases.remove(tx, shop.id)


def test_what_has_been_filled_in_the_lake_is_left_too(catalog: Catalog, given: Given, shop: Database) -> None:
    with catalog.write() as tx:
        made = noted(tx, shop, given)
        stream = given.stream(tx, "totals", refresh_mode=RefreshMode.FULL)
        hosted.link(tx, made.id, stream.relation.id)
        assert hosted.left(tx) == []
        streams.update(tx, stream.relation.id, now=given.now, populated=True, version=0)
        assert [one.id for one in hosted.left(tx)] == [made.id]
        hosted.unlink(tx, stream.relation.id)
        assert hosted.of(tx, [stream.relation.id]) == {}


def test_the_scheduler_does_not_see_what_lives_elsewhere(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        given.stream(tx, "here")
        there = given.stream(tx, "there")
        relations.update(tx, there.relation.id, now=given.now, location=None)
        assert [str(table.name) for table in streams.schedulable(tx)] == ["here"]
        assert [str(stream.relation.name) for stream in streams.listing(tx)] == ["here", "there"]
