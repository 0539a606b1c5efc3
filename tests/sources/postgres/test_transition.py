"""From triggers to WAL and back while others write; every way to die on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from tests.sources.postgres.given import OWN
from tests.sources.postgres.small_lake import SmallLake, apply, contents
from trickle.errors import HistoryLost, InternalError
from trickle.postgres.connect import connected
from trickle.postgres.tables import SourceTable
from trickle.sources.postgres import transition
from trickle.sources.postgres.buffers import TriggerCapture
from trickle.sources.postgres.transition import Facts, Phase, Step, decide


class Database(SmallLake):
    """Replicas that begin with triggers."""

    @property
    def triggers(self) -> TriggerCapture:
        return TriggerCapture(self.connection, OWN)

    def attach_by_triggers(self, table: SourceTable) -> None:
        self.triggers.arm(table)
        with connected(self.dsn) as loader:
            loader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            found = loader.execute("SELECT pg_current_snapshot()::text").fetchone()
            assert found is not None
            self.rows[table.oid] = contents(loader, table)
        self.positions[table.oid] = f"trigger:{found[0]}"
        self.tables[table.oid] = table

    def ingest_triggers(self) -> None:
        capture = self.triggers
        upto = capture.position()
        for table, changes in capture.changes(list(self.tables.values()), self.positions, upto):
            apply(self.rows[table.oid], changes)
        self.positions = dict.fromkeys(self.positions, upto)
        capture.forget(upto)

    def left_at_the_source(self) -> tuple[int, int, int]:
        found = self.connection.execute(
            "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()),"
            " (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal)"
        ).fetchone()
        assert found is not None
        return found


@pytest.fixture
def database(lake: SmallLake, user: psycopg.Connection) -> Database:
    from trickle.postgres.tables import describe

    user.execute("CREATE TABLE a (id serial PRIMARY KEY, v int); CREATE TABLE b (v int)")
    user.execute("ALTER TABLE b REPLICA IDENTITY FULL")
    user.execute("INSERT INTO a (v) SELECT n FROM generate_series(1, 50) n")
    database = Database(lake.connection, lake.dsn)
    for name in "ab":
        database.attach_by_triggers(describe(lake.connection, "public", name))
    return database


@contextmanager
def writing(dsn: str) -> Iterator[None]:
    """Somebody writes all the time."""
    done = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not done.is_set():
                with connection.transaction():
                    connection.execute("INSERT INTO b SELECT count(*) FROM a")
                    connection.execute(
                        "UPDATE a SET v = v + 1 WHERE id IN (SELECT id FROM a ORDER BY random() LIMIT 3)"
                    )
                connection.execute("INSERT INTO a (v) VALUES (0)")
                connection.execute("DELETE FROM a WHERE id = (SELECT min(id) FROM a)")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_from_triggers_to_wal_and_back_under_writers(database: Database, wal_dsn: str) -> None:
    tables = list(database.tables.values())
    with writing(wal_dsn):
        database.ingest_triggers()
        armed = transition.begin(database.connection, database.capture, tables)
        assert not transition.is_covered(armed, database.positions)
        database.ingest_triggers()
        database.positions = transition.switched(database.capture, armed, database.positions)
        assert transition.phase_of(database.positions, is_transitioning=True) is Phase.WAL
        transition.disarm(database.triggers, tables)
        for _ in range(3):
            database.ingest()
    database.ingest()
    database.check()
    assert database.left_at_the_source() == (1, 1, 0)

    with writing(wal_dsn):
        armed = transition.begin(database.connection, database.triggers, tables)
        database.ingest()
        upto, position = transition.last_of_wal(database.capture, armed, database.triggers)
        database.ingest(upto, forget=False)
        database.positions = dict.fromkeys(database.positions, position)
        transition.disarm(database.capture, tables)
        database.ingest_triggers()
    database.ingest_triggers()
    database.check()
    assert database.left_at_the_source()[:2] == (0, 0)


def test_positions_that_are_too_early_are_not_switched(database: Database, user: psycopg.Connection) -> None:
    user.execute("INSERT INTO b VALUES (1)")
    armed = transition.begin(database.connection, database.capture, list(database.tables.values()))
    with pytest.raises(InternalError, match="not as far"):
        transition.switched(database.capture, armed, database.positions)


def test_a_stuck_transition_is_rolled_back(database: Database, user: psycopg.Connection) -> None:
    tables = list(database.tables.values())
    transition.begin(database.connection, database.capture, tables)
    user.execute("INSERT INTO b VALUES (1)")
    # The process died here; another one finds both captures armed.
    transition.disarm(database.capture, tables)
    transition.disarm(database.capture, tables)
    user.execute("INSERT INTO b VALUES (2)")
    database.ingest_triggers()
    database.check()
    assert database.left_at_the_source()[:2] == (0, 0)


def test_a_process_that_died_after_the_switch(database: Database, user: psycopg.Connection) -> None:
    tables = list(database.tables.values())
    armed = transition.begin(database.connection, database.capture, tables)
    database.ingest_triggers()
    user.execute("INSERT INTO b VALUES (1)")
    database.positions = transition.switched(database.capture, armed, database.positions)
    # Triggers still write; nobody reads them any more.
    user.execute("INSERT INTO b VALUES (2)")
    database.ingest()
    database.check()
    transition.disarm(database.triggers, tables)
    user.execute("INSERT INTO b VALUES (3)")
    database.ingest()
    database.check()


def test_a_transition_may_begin_twice(database: Database, user: psycopg.Connection) -> None:
    tables = list(database.tables.values())
    transition.begin(database.connection, database.capture, tables)
    user.execute("INSERT INTO b VALUES (1)")
    armed = transition.begin(database.connection, database.capture, tables)
    database.ingest_triggers()
    database.positions = transition.switched(database.capture, armed, database.positions)
    user.execute("INSERT INTO b VALUES (2)")
    database.ingest()
    database.check()


def test_a_lost_slot_falls_back_to_triggers(database: Database, user: psycopg.Connection) -> None:
    tables = list(database.tables.values())
    armed = transition.begin(database.connection, database.capture, tables)
    database.ingest_triggers()
    database.positions = transition.switched(database.capture, armed, database.positions)
    transition.disarm(database.triggers, tables)
    user.execute("SELECT pg_drop_replication_slot('trickle_test'); INSERT INTO b VALUES (1)")
    with pytest.raises(HistoryLost):
        database.ingest()
    transition.fall_back(database.capture, database.triggers, tables)
    for table in tables:
        database.attach_by_triggers(table)
    user.execute("INSERT INTO b VALUES (2)")
    database.ingest_triggers()
    database.check()
    assert database.left_at_the_source()[:2] == (0, 0)


def test_what_is_in_the_way_is_said_once(database: Database, user: psycopg.Connection) -> None:
    tables = list(database.tables.values())
    assert transition.obstacles(database.capture, tables) == ()
    user.execute("ALTER TABLE b REPLICA IDENTITY NOTHING")
    assert transition.obstacles(database.capture, [*tables, *tables]) == (
        "public.b has no replica identity: the WAL does not say which row changes",
    )


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    "facts, step, reason",
    [
        (Facts(Phase.TRIGGER, wants_wal=False), Step.STAY, "as asked for"),
        (Facts(Phase.TRIGGER, wants_wal=True), Step.BEGIN, "can be captured"),
        (Facts(Phase.TRIGGER, wants_wal=True, obstacles=("no key",)), Step.STAY, "stays with triggers: no key"),
        (Facts(Phase.TRANSITIONING, wants_wal=True), Step.STAY, "waits for an ingest"),
        (Facts(Phase.TRANSITIONING, wants_wal=True, is_covered=True), Step.SWITCH, "has everything"),
        (Facts(Phase.TRANSITIONING, wants_wal=True, age=2 * HOUR, patience=HOUR), Step.ROLL_BACK, "2:00:00"),
        (Facts(Phase.TRANSITIONING, wants_wal=True, obstacles=("no key",), is_covered=True), Step.ROLL_BACK, "no key"),
        (Facts(Phase.TRANSITIONING, wants_wal=False, is_covered=True), Step.ROLL_BACK, "asked for"),
        (Facts(Phase.WAL, wants_wal=True), Step.STAY, "from the WAL"),
    ],
)
def test_the_next_step_follows_from_the_facts(facts: Facts, step: Step, reason: str) -> None:
    decision = decide(facts)
    assert decision.step is step
    assert reason in decision.reason


def test_the_phase_is_told_by_the_positions() -> None:
    assert transition.phase_of({1: "trigger:1:1:"}, is_transitioning=False) is Phase.TRIGGER
    assert transition.phase_of({1: "trigger:1:1:"}, is_transitioning=True) is Phase.TRANSITIONING
    assert transition.phase_of({1: "wal:0/1", 2: "wal:0/2"}, is_transitioning=False) is Phase.WAL
    with pytest.raises(InternalError):
        transition.phase_of({1: "wal:0/1", 2: "trigger:1:1:"}, is_transitioning=False)
