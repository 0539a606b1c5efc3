"""What is in the way of WAL capture, found before it gets in the way of the users' own statements."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres import Postgres
from tests.sources.postgres.small_lake import SmallLake
from trickle.errors import SourceRefused
from trickle.postgres.connect import Connection, connected
from trickle.postgres.tables import describe, describe_oids
from trickle.sources.postgres.eligible import obstacle
from trickle.sources.postgres.wal import WalCapture


def test_stored_generated_columns_are_sent_since_version_18(
    lake: SmallLake, user: psycopg.Connection, trickle_connection: Connection
) -> None:
    user.execute("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    table = describe(trickle_connection, "public", "t")
    found = describe_oids(trickle_connection, [table.oid])
    older = obstacle(table, found, 170_004)
    assert older is not None
    assert older.reason == "column 'twice' of public.t is generated: the server does not send it"
    if trickle_connection.info.server_version >= 180_000:
        lake.attach("t")
        user.execute("INSERT INTO t VALUES (3)")
        user.execute("UPDATE t SET id = 4")
        lake.ingest()
        lake.check()


def test_virtual_generated_columns_are_refused(lake: SmallLake, user: psycopg.Connection) -> None:
    if user.info.server_version < 180_000:
        pytest.skip("there are none before version 18")
    user.execute("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)")
    with pytest.raises(SourceRefused) as caught:
        lake.attach("t")
    assert caught.value.detail == "column 'twice' of public.t is computed when it is read"


def test_unlogged_tables_are_refused(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE UNLOGGED TABLE t (id int PRIMARY KEY)")
    with pytest.raises(SourceRefused) as caught:
        lake.attach("t")
    assert "is unlogged" in (caught.value.detail or "")
    assert "ALTER TABLE public.t SET LOGGED" in (caught.value.hint or "")


def test_what_is_no_table_is_refused(lake: SmallLake, user: psycopg.Connection) -> None:
    user.execute("CREATE MATERIALIZED VIEW m AS SELECT 1 AS one")
    with pytest.raises(SourceRefused) as caught:
        lake.attach("m")
    assert caught.value.detail == "public.m is not a table"


def test_a_key_that_is_not_used_is_refused(user: psycopg.Connection, trickle_connection: Connection) -> None:
    from dataclasses import replace

    user.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    whole = describe(trickle_connection, "public", "t")
    table = replace(whole, columns=whole.columns[1:])
    found = obstacle(table, {whole.oid: whole}, 180_000)
    assert found is not None
    assert found.reason == "the key of public.t is not among the columns that are used"


def test_a_server_that_writes_no_logical_wal(postgres: Postgres) -> None:
    with postgres.database() as dsn, connected(dsn) as connection:
        connection.execute("CREATE TABLE public.t (id int PRIMARY KEY)")
        with pytest.raises(SourceRefused) as caught:
            WalCapture(connection, "trickle_none").arm(describe(connection, "public", "t"))
    assert caught.value.detail == "the server's wal_level is replica"
    assert "ALTER SYSTEM SET wal_level = logical" in (caught.value.hint or "")


def test_a_user_who_may_not_make_slots(lake: SmallLake, user: psycopg.Connection, wal_dsn: str) -> None:
    user.execute("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN")
    user.execute("GRANT CREATE ON SCHEMA public TO plain; SET ROLE plain; CREATE TABLE t (id int PRIMARY KEY)")
    with connected(wal_dsn.replace("postgres@", "plain@", 1)) as connection, pytest.raises(SourceRefused) as caught:
        WalCapture(connection, "trickle_plain").arm(describe(connection, "public", "t"))
    assert caught.value.detail == "the user may not make replication slots"
