"""A warehouse with an attached PostgreSQL database beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.conftest import dsn as dsn
from trickle.api import Trickle, connect
from trickle.engine import Engine

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, "Full Name" text NOT NULL, region text);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer int, amount numeric(12, 2), placed date, key uuid);
    CREATE INDEX ON orders (customer);
    INSERT INTO customers SELECT n, 'name ' || n, CASE WHEN n % 4 > 0 THEN 'r' || n % 4 END
                          FROM generate_series(1, 12) n;
    INSERT INTO orders SELECT n, nullif(n % 14, 0), CASE WHEN n % 9 > 0 THEN n % 23 + 0.25 END,
                              date '2024-01-01' + n % 20, md5(n::text)::uuid FROM generate_series(1, 60) n;
"""
Session = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def t(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    opened = connect(tmp_path / "warehouse", spark=engine.spark)
    yield opened
    opened.warehouse.catalog.close()


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    """A session of the user's, in a database with two tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SHOP)
        yield connection


@pytest.fixture
def shop(t: Trickle, dsn: str, session: Session) -> Session:
    """The same, attached as ``shop``."""
    t.attach_postgres("shop", dsn, tables=["customers", "orders"], cdc_mode="trigger")
    return session
