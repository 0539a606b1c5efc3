"""Stream tables in PostgreSQL where others are in the way: other stream tables, other processes, other sessions."""

from __future__ import annotations

import pytest

from tests.immediate.conftest import Session
from tests.immediate.test_definition import BIG, rows, stored
from trickle.api import Trickle
from trickle.catalog import databases, hosted
from trickle.errors import DependentsExist, DuplicateName, UserError
from trickle.immediate.postgres import installed
from trickle.immediate.postgres.steps import Step, observe


def test_a_place_that_is_taken_is_not_even_noted(t: Trickle, shop: Session) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    steps: list[Step] = []
    observe(steps.append)
    try:
        with pytest.raises(DuplicateName, match=r"public\.big is there already"):
            t.create_stream_table("shop.big", "SELECT id FROM shop.orders", refresh_mode="IMMEDIATE")
    finally:
        observe(None)
    assert Step.NOTED not in steps
    t.tick()
    assert installed(shop) == [("public", "big")]
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)


def test_a_note_of_nobody_takes_only_its_own_table_along(t: Trickle, shop: Session) -> None:
    """Another warehouse, or a user, took the name after a process had noted it and before it was killed."""
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with t.warehouse.catalog.write() as tx:
        (database,) = databases.listing(tx)
        now = t.warehouse.clock.now()
        hosted.add(tx, database.id, schema="public", table="big", columns={}, text="SELECT 1", now=now)
    t.tick()
    assert installed(shop) == [("public", "big")]
    with t.warehouse.catalog.read() as tx:
        assert len(hosted.listing(tx)) == 1
        assert hosted.left(tx) == []


def test_what_was_called_otherwise_in_postgresql_is_removed_all_the_same(t: Trickle, shop: Session) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    shop.execute("ALTER TABLE big RENAME TO large")
    t.drop_stream_table("big")
    assert installed(shop) == []
    assert shop.execute("SELECT to_regclass('public.large')").fetchone() == (None,)


def test_what_is_published_does_not_move(t: Trickle, shop: Session, dsn: str) -> None:
    t.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")
    t.publish("big", dsn, table="published")
    with pytest.raises(DependentsExist, match="it is published"):
        t.alter_stream_table("big", refresh_mode="IMMEDIATE")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.ingest()
    t.refresh_stream_table("big")
    assert stored(shop, "published", "*") == rows(t, BIG)
    t.unpublish("big", drop=True)
    t.alter_stream_table("big", refresh_mode="IMMEDIATE")
    with pytest.raises(UserError, match="lives in PostgreSQL") as caught:
        t.publish("big", dsn, table="published")
    assert "shop: public.big" in str(caught.value.detail)


def test_what_is_published_while_it_moves_does_not_move(t: Trickle, shop: Session, dsn: str) -> None:
    t.create_stream_table("big", BIG, refresh_mode="DIFFERENTIAL")

    def publish(reached: Step) -> None:
        if reached is Step.INSTALLED:
            t.publish("big", dsn, table="published")

    observe(publish)
    try:
        with pytest.raises(DependentsExist, match="it is published"):
            t.alter_stream_table("big", refresh_mode="IMMEDIATE")
    finally:
        observe(None)
    assert installed(shop) == []
    assert stored(shop, "published", "*") == rows(t, "SELECT * FROM big") == rows(t, BIG)
