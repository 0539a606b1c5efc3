from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from tests.catalog.given import Given, named
from trickle.catalog import (
    Action,
    Catalog,
    Initiator,
    IntentMember,
    Outcome,
    RefreshMode,
    Severity,
    Status,
    alerts,
    fuses,
    groups,
    history,
    intents,
    jobs,
    leases,
    preferences,
    relations,
    scheduling,
    source_gates,
    streams,
    user_gates,
    watermarks,
)


@pytest.fixture
def shop(catalog: Catalog, given: Given) -> Catalog:
    """Two tables, two stream tables, one of everything that can be dropped."""
    with catalog.write() as tx:
        orders, events = given.table(tx, "orders"), given.table(tx, "events")
        a, b = given.stream(tx, "a", [orders]).relation, given.stream(tx, "b", [events]).relation
        groups.create(tx, "g", [a.name, b.name], now=given.now)
        watermarks.create_group(tx, "w", [orders.name, events.name], tolerance=timedelta(0), now=given.now)
        user_gates.add(tx, "u", kind="sql", text="TRUE", now=given.now)
        source_gates.gate(tx, events.id, "etl", None, given.now)
        fuses.put_rating(tx, events.id, mode="fixed", ceiling=5, now=given.now)
        preferences.put(tx, "max_consecutive_errors", "5", given.now)
    return catalog


def id_of(tx: Session, name: str) -> int:
    return relations.get(tx, named(name)).id


DEFINITIONS: dict[str, Callable[[Session, Given], object]] = {
    "a new table": lambda tx, g: g.table(tx, "new"),
    "another name": lambda tx, g: relations.update(tx, id_of(tx, "orders"), now=g.now, name=named("bills")),
    "other sources": lambda tx, _: relations.set_dependencies(tx, id_of(tx, "a"), []),
    "a dropped stream table": lambda tx, _: relations.remove(tx, id_of(tx, "a")),
    "another schedule": lambda tx, g: streams.update(tx, id_of(tx, "a"), now=g.now, schedule="9s"),
    "other options": lambda tx, g: streams.update(tx, id_of(tx, "a"), now=g.now, options={"tier": "cold"}),
    "another mode": lambda tx, g: streams.update(tx, id_of(tx, "a"), now=g.now, refresh_mode=RefreshMode.FULL),
    "a dropped group": lambda tx, _: groups.drop(tx, "g"),
    "a dropped watermark group": lambda tx, _: watermarks.drop_group(tx, "w"),
    "a dropped gate": lambda tx, _: user_gates.drop(tx, "u"),
    "an opened source": lambda tx, g: source_gates.ungate(tx, id_of(tx, "events"), g.now),
    "another rating": lambda tx, g: fuses.put_rating(tx, id_of(tx, "events"), mode="none", now=g.now),
    "another setting": lambda tx, g: preferences.put(tx, "max_consecutive_errors", "6", g.now),
    "a setting less": lambda tx, _: preferences.clear(tx, "max_consecutive_errors"),
}


@pytest.mark.parametrize("change", DEFINITIONS.values(), ids=DEFINITIONS)
def test_every_change_of_a_definition_is_counted(shop: Catalog, given: Given, change) -> None:
    with shop.read() as tx:
        before = scheduling.ddl_number(tx)
    with shop.write() as tx:
        change(tx, given)
    with shop.read() as tx:
        assert scheduling.ddl_number(tx) > before > 0


def test_what_is_undone_is_not_counted(shop: Catalog, given: Given) -> None:
    with shop.read() as tx:
        before = scheduling.ddl_number(tx)
    with pytest.raises(ZeroDivisionError), shop.write() as tx:
        given.table(tx, "new")
        raise ZeroDivisionError
    with shop.read() as tx:
        assert scheduling.ddl_number(tx) == before


def test_refreshes_and_their_gates_count_for_nothing(shop: Catalog, given: Given) -> None:
    with shop.write() as tx:
        fuses.blow(tx, id_of(tx, "events"), given.now, "too much", {})
    with shop.write() as tx:
        before = scheduling.ddl_number(tx)
        a, orders, events = id_of(tx, "a"), id_of(tx, "orders"), id_of(tx, "events")
        refresh = history.start(
            tx, relation_id=a, name="a", action=Action.FULL, initiated_by=Initiator.SCHEDULER, now=given.now
        )
        intent = intents.add(tx, [IntentMember(a, 0, None, 1, refresh)], given.now)
        intents.remove(tx, intent.id)
        streams.update(tx, a, now=given.now, status=Status.ACTIVE, version=1, populated=True, state={"x": 1})
        streams.set_frontier(tx, a, {orders: "3"})
        streams.mark_idle(tx, [a], given.now, given.now)
        history.finish(tx, refresh, status=Outcome.COMPLETED, now=given.now)
        alerts.add(tx, event="resumed", severity=Severity.INFO, now=given.now)
        fuses.reset(tx, events, "apply", "ada", given.now)
        watermarks.advance(tx, orders, given.now, position="3", by=None, now=given.now)
        leases.acquire(tx, "scheduler", "ada", timedelta(seconds=5), given.now)
        jobs.enqueue(tx, unit_key="a", kind="SINGLETON", members=[a], now=given.now)
        scheduling.pause(tx, "ada", None, given.now)
    with shop.read() as tx:
        assert scheduling.ddl_number(tx) == before


def test_the_triggers_survived_every_migration(catalog: Catalog, backend: str) -> None:
    """SQLite drops the triggers of a table that a migration rebuilds: then that migration must make them again."""
    counted = {
        "dependencies",
        "fuses",
        "refresh_group_members",
        "refresh_groups",
        "relations",
        "settings",
        "source_gates",
        "stream_tables",
        "user_gates",
        "watermark_group_members",
        "watermark_groups",
    }
    with catalog.read() as tx:
        if backend == "sqlite":
            found = tx.execute(text("SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
            assert sorted(found) == sorted(3 * list(counted))
        else:
            wanted = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE 'count%'"
            assert {name.removeprefix("trickle.") for name in tx.execute(text(wanted)).scalars()} == counted


def test_definitions_that_change_side_by_side_do_not_wait_in_turn(postgres_catalog: Catalog, given: Given) -> None:
    """The counter is locked last: else the second would hold ``b`` and wait for it, and the first would want ``b``."""
    catalog = postgres_catalog
    with catalog.write() as tx:
        a, b = (given.stream(tx, name).relation.id for name in "ab")
    changed = threading.Event()

    def second() -> None:
        with catalog.write() as tx:
            streams.update(tx, b, now=given.now, schedule="9s")
            changed.set()

    other = threading.Thread(target=second)
    with catalog.write() as tx:
        streams.update(tx, a, now=given.now, schedule="9s")
        other.start()
        assert changed.wait(10)
        streams.update(tx, b, now=given.now, schedule="8s")
    other.join()
    with catalog.read() as tx:
        assert streams.by_id(tx, b).schedule == "8s"


def test_schedulers_are_paused_and_resumed(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        assert not scheduling.state(tx).paused
        assert scheduling.resume(tx) is False
        paused = scheduling.pause(tx, "ada", "migration", given.now)
        assert (paused.paused, paused.paused_at, paused.paused_by, paused.pause_reason) == (
            True,
            given.now,
            "ada",
            "migration",
        )
        assert scheduling.pause(tx, "bob", None, given.later(5)) == paused
        assert scheduling.resume(tx) is True
        assert not scheduling.state(tx).paused


def test_schedulers_are_drained_and_begin_again(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        assert scheduling.end_drain(tx) is False
        draining = scheduling.drain(tx, "ada", given.now)
        assert (draining.draining, draining.draining_since, draining.draining_by) == (True, given.now, "ada")
        assert scheduling.drain(tx, "bob", given.later(5)) == draining
        assert scheduling.end_drain(tx) is True
        assert not scheduling.state(tx).draining
