"""A database of its own for every test, and a capture on it; for WAL on a server whose WAL can be read."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Postgres
from tests.postgres.conftest import connection as connection
from tests.postgres.conftest import dsn as dsn
from tests.sources.postgres.small_lake import SmallLake
from trickle.postgres.connect import Connection, connected


@pytest.fixture
def wal_dsn(logical_postgres: Postgres) -> Iterator[str]:
    with logical_postgres.database() as url:
        yield url
        # A database with slots cannot be dropped.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = current_database()"
            )


@pytest.fixture
def user(wal_dsn: str) -> Iterator[psycopg.Connection]:
    """Somebody who writes."""
    with psycopg.connect(wal_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def trickle_connection(wal_dsn: str) -> Iterator[Connection]:
    with connected(wal_dsn) as connection:
        yield connection


@pytest.fixture
def lake(trickle_connection: Connection, wal_dsn: str) -> SmallLake:
    return SmallLake(trickle_connection, wal_dsn)
