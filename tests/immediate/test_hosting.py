"""Stream tables in PostgreSQL where others are in the way: other stream tables, other processes, other sessions."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Self

import psycopg
import pytest

from tests.immediate.conftest import Session
from tests.immediate.test_definition import BIG, rows, stored
from trickle.api import Trickle
from trickle.apply import steps as unit
from trickle.catalog import Action, Initiator, databases, history, hosted, relations
from trickle.errors import ConcurrentModification, DependentsExist, DuplicateName, TrickleError, UserError
from trickle.history.failures import close_abandoned
from trickle.immediate.postgres import installed
from trickle.immediate.postgres.steps import Step, observe
from trickle.sql.names import table_name


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


class Halted:
    """A thread that is stopped at a step until it is told to go on; ``error`` is what it ended with."""

    def __init__(self, step: Step | unit.Step, action: Callable[[], object]) -> None:
        self._step, self._action = step, action
        self._at, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.error: TrickleError | None = None

    def __enter__(self) -> Self:
        observe(self._reached)
        unit.observe(self._reached)
        self._thread.start()
        assert self._at.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._thread.join()
        observe(None)
        unit.observe(None)

    def _reached(self, step: Step | unit.Step, _place: int = 0) -> None:
        if step is self._step and threading.current_thread() is self._thread:
            self._at.set()
            assert self._go.wait(60)

    def _run(self) -> None:
        try:
            self._action()
        except TrickleError as error:
            self.error = error
        self._at.set()


def test_a_move_that_is_under_way_is_not_taken_for_dead(t: Trickle, shop: Session) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with Halted(Step.PLACED, lambda: t.alter_stream_table("big", refresh_mode="FULL")) as move:
        for mode in ("AUTO", "IMMEDIATE"):
            with pytest.raises(ConcurrentModification, match="another process moves"):
                t.alter_stream_table("big", refresh_mode=mode)
        assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    assert move.error is None
    assert [row.refresh_mode for row in t.status()] == ["FULL"]
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    assert installed(shop) == []


@pytest.mark.parametrize("step", [Step.PLACED, unit.Step.STAGED])
def test_a_move_whose_lock_was_lost_does_no_harm(t: Trickle, shop: Session, step: Step | unit.Step) -> None:
    """The server ended its session: another process takes it for dead and takes it back."""
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with Halted(step, lambda: t.alter_stream_table("big", refresh_mode="FULL")) as move:
        shop.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert t.alter_stream_table("big", schedule="5m").refresh_mode == "IMMEDIATE"
    assert move.error is not None
    (row,) = t.status()
    assert (row.refresh_mode, row.location, row.schedule) == ("IMMEDIATE", "shop: public.big", "5m")
    t.tick()
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id < 30")
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)
    t.alter_stream_table("big", refresh_mode="FULL")
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)


def test_an_intent_that_stands_is_not_left_over_nothing(t: Trickle, shop: Session) -> None:
    """The fill is decided and not carried out when its process fails: it is carried out, and the move goes on."""
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")

    def fail(step: unit.Step, _place: int) -> None:
        if step is unit.Step.INTENT_WRITTEN:
            unit.observe(None)
            raise ConcurrentModification("the catalog went away")

    unit.observe(fail)
    try:
        t.alter_stream_table("big", refresh_mode="FULL")
    finally:
        unit.observe(None)
    assert [row.refresh_mode for row in t.status()] == ["FULL"]
    assert rows(t, "SELECT * FROM big") == rows(t, BIG)


def test_a_refresh_that_died_in_the_lake_does_not_keep_anybody_out(t: Trickle, shop: Session) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with t.warehouse.catalog.write() as tx:
        relation = relations.get(tx, table_name("big"))
        history.start(
            tx,
            relation_id=relation.id,
            name="big",
            action=Action.FULL,
            initiated_by=Initiator.INITIAL,
            now=t.warehouse.clock.now(),
            details={"pid": 2**22 + 1, "host": socket.gethostname(), "stage": "gone"},
        )
    assert close_abandoned(t.warehouse) == 1


def test_a_table_that_others_hold_is_not_waited_for_forever(t: Trickle, shop: Session, dsn: str) -> None:
    with psycopg.connect(dsn) as busy:
        busy.execute("INSERT INTO orders VALUES (500, 1, 5, '2024-01-01')")
        with pytest.raises(ConcurrentModification, match="other sessions hold tables") as caught:
            t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
        assert "try again" in str(caught.value.hint)
    with t.warehouse.catalog.read() as tx:
        assert hosted.listing(tx) == []
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    with psycopg.connect(dsn) as busy:
        busy.execute("SELECT FROM big")
        t.drop_stream_table("big")
        assert installed(shop) == [("public", "big")], "it is removed later"
    t.tick()
    assert installed(shop) == []


def test_the_catalog_can_be_written_while_a_new_query_is_filled(t: Trickle, shop: Session, dsn: str) -> None:
    t.create_stream_table("big", BIG, refresh_mode="IMMEDIATE")
    regions = "SELECT region FROM shop.customers"
    with psycopg.connect(dsn) as busy:
        busy.execute("UPDATE customers SET region = 'r9' WHERE id = 1")
        changing = threading.Thread(target=lambda: t.alter_stream_table("big", query=regions))
        changing.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%customers%'"
        until = time.monotonic() + 30
        while shop.execute(waits).fetchone() == (0,):
            assert time.monotonic() < until
            time.sleep(0.05)
        with t.warehouse.catalog.write() as tx:
            assert len(databases.listing(tx)) == 1
        assert shop.execute(waits).fetchone() == (1,), "the one did not wait for the other"
        busy.commit()
        changing.join()
    t.ingest()
    assert rows(t, "SELECT * FROM big") == rows(t, regions)
