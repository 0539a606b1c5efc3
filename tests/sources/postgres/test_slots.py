"""A slot's life with its server: restarts, lost WAL, lag, other encodings."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Postgres, running_postgres
from tests.sources.postgres.small_lake import SmallLake
from trickle.errors import ConcurrentModification, HistoryLost, SourceRefused, SourceUnreachable
from trickle.postgres.connect import connected
from trickle.sources.postgres import slots
from trickle.sources.postgres.capture import State
from trickle.sources.postgres.positions import WalPosition


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that a test may kill."""
    with running_postgres(wal_level="logical", max_slot_wal_keep_size="1MB", min_wal_size="32MB") as server:
        yield server


def test_a_server_that_dies_in_between_loses_and_repeats_nothing(server: Postgres) -> None:
    with server.database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as user, connected(dsn) as connection:
            user.execute("CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY FULL")
            lake = SmallLake(connection, dsn)
            lake.attach("t")
            user.execute("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 100) n")
            # The lake has it; where the slot stands is not on disk yet.
            lake.ingest()
            user.execute("SET synchronous_commit = on; DELETE FROM t WHERE a > 50")
            server.kill()
            with pytest.raises(psycopg.OperationalError):
                lake.ingest()
        with pytest.raises(SourceUnreachable), connected(dsn):
            pass
        server.start()
        with psycopg.connect(dsn, autocommit=True) as user, connected(dsn) as connection:
            lake.connection = connection
            user.execute("INSERT INTO t VALUES (1000, 'after')")
            lake.ingest()
            lake.check()
            lake.capture.disarm(next(iter(lake.tables.values())))


def test_wal_that_the_server_gave_up_is_noticed_and_arming_begins_anew(server: Postgres) -> None:
    with server.database() as dsn, psycopg.connect(dsn, autocommit=True) as user, connected(dsn) as connection:
        user.execute("CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE noise (x text)")
        lake = SmallLake(connection, dsn)
        table = lake.attach("t")
        user.execute("INSERT INTO t VALUES (1)")
        for _ in range(4):
            user.execute("INSERT INTO noise SELECT repeat(md5(n::text), 20) FROM generate_series(1, 20000) n")
            user.execute("SELECT pg_switch_wal(); CHECKPOINT")
        with pytest.raises(HistoryLost) as caught:
            lake.ingest()
        assert caught.value.detail in ("wal_removed", "its WAL was removed")
        assert lake.capture.slot_health().state is State.CRITICAL
        lake.capture.forget(lake.positions[table.oid])
        lake.attach("t")
        user.execute("INSERT INTO t VALUES (2)")
        lake.ingest()
        lake.check()
        lake.capture.disarm(table)


def test_lag_becomes_a_warning_and_then_critical(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE noise (x text)")
    table = lake.attach("t")
    assert [(one.what, one.state) for one in lake.capture.health([table])] == [
        ("slot trickle_test", State.OK),
        ("public.t", State.OK),
    ]
    user.execute("INSERT INTO noise SELECT repeat(md5(n::text), 20) FROM generate_series(1, 5000) n")
    lake.options = {"warning_mb": 1, "critical_mb": 100}
    found = lake.capture.slot_health()
    assert found.state is State.WARNING
    assert found.bytes is not None
    assert found.bytes > 1_000_000
    lake.options = {"warning_mb": 1, "critical_mb": 2}
    assert lake.capture.slot_health().state is State.CRITICAL
    lake.ingest()
    user.execute("CHECKPOINT")
    lake.ingest()
    user.execute("INSERT INTO t VALUES (1)")
    lake.ingest()
    lake.check()


def test_health_says_what_somebody_changed(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute(
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY)"
    )
    tables = [lake.attach(name) for name in "abc"]
    user.execute("ALTER TABLE a REPLICA IDENTITY NOTHING; ALTER PUBLICATION trickle_test DROP TABLE b; DROP TABLE c")
    _, a, b, c = lake.capture.health(tables)
    assert a.message.startswith("public.a has no replica identity")
    assert b.message == "it is not in the publication 'trickle_test'"
    assert c.message == "the table is gone"
    assert {a.state, b.state, c.state} == {State.CRITICAL}


def test_health_of_a_slot_that_is_gone(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    user.execute("SELECT pg_drop_replication_slot('trickle_test')")
    assert lake.capture.slot_health().message.startswith("it is gone")


def test_a_slot_of_somebody_else_is_left_alone(
    lake: SmallLake, user: psycopg.Connection, logical_postgres: Postgres
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    logical_postgres.execute("SELECT pg_create_logical_replication_slot('trickle_test', 'pgoutput')")
    try:
        with pytest.raises(SourceRefused, match="not Trickle's"):
            lake.attach("t")
        slots.drop_slot(lake.connection, "trickle_test")
    finally:
        logical_postgres.execute("SELECT pg_drop_replication_slot('trickle_test')")


def test_two_that_read_one_slot_at_once(lake: SmallLake, user: psycopg.Connection, wal_dsn: str) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    other = psycopg.pq.PGconn.connect(f"{wal_dsn}&replication=database".encode())
    try:
        options = "proto_version '1', publication_names 'trickle_test'"
        started = other.exec_(f"START_REPLICATION SLOT trickle_test LOGICAL 0/0 ({options})".encode())
        assert started.status == psycopg.pq.ExecStatus.COPY_BOTH
        with pytest.raises(ConcurrentModification, match="another session uses"):
            lake.ingest()
    finally:
        other.finish()
    while user.execute("SELECT active FROM pg_replication_slots WHERE slot_name = 'trickle_test'").fetchone() == (
        True,
    ):
        user.execute("SELECT pg_sleep(0.05)")
    user.execute("INSERT INTO t VALUES (1)")
    lake.ingest()
    lake.check()


def test_texts_of_another_encoding(logical_postgres: Postgres) -> None:
    logical_postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    dsn = logical_postgres.url("latin")
    try:
        with psycopg.connect(dsn, autocommit=True) as user, connected(dsn) as connection:
            user.execute("SET client_encoding = 'UTF8'")
            user.execute('CREATE TABLE "Größe" ("é" text PRIMARY KEY)')
            lake = SmallLake(connection, dsn)
            table = lake.attach("Größe")
            user.execute("INSERT INTO \"Größe\" VALUES ('naïve')")
            lake.ingest()
            lake.check()
            assert lake.rows[table.oid] == {("naïve",): 1}
            lake.capture.disarm(table)
    finally:
        logical_postgres.execute("DROP DATABASE latin")


def test_commits_that_nobody_waited_for_are_taken_along(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    user.execute("SET synchronous_commit = off")
    for number in range(20):
        user.execute("INSERT INTO t VALUES (%s)", (number,))
        lake.ingest()
        lake.check()


def test_a_position_stands_still_where_nothing_is_written(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    lake.attach("t")
    lake.ingest()
    # The server writes WAL by itself now and then.
    assert any(lake.capture.position() == lake.capture.position() for _ in range(20))


def test_advancing_into_a_record_skips_it_and_so_do_positions(lake: SmallLake, user: psycopg.Connection) -> None:
    """The rule of positions is the server's own: what begins before an LSN belongs to it."""
    from trickle.sources.postgres.pgoutput import Commit, decode

    user.execute("CREATE TABLE t (id int PRIMARY KEY)")
    table = lake.attach("t")
    lake.ingest()
    user.execute("INSERT INTO t VALUES (1)")
    upto = WalPosition.parse(lake.capture.position()).lsn
    (commit,) = [m for m in map(decode, slots.peek(lake.connection, lake.name, upto)) if isinstance(m, Commit)]
    inside = str(WalPosition(commit.lsn + 8))
    found = dict(lake.peek(inside))
    assert found["t"].rows.num_rows == 1
    lake.capture.forget(inside)
    lake.positions[table.oid] = inside
    assert lake.peek() == []
