"""A warehouse with a PostgreSQL database beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.conftest import dsn as dsn
from trickle.api import Trickle, connect
from trickle.engine import Engine


@pytest.fixture
def t(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    opened = connect(tmp_path / "warehouse", spark=engine.spark)
    yield opened
    opened.warehouse.catalog.close()


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of the user's, in a database with two tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount numeric(12,2), rate float8)"
        )
        connection.execute("CREATE TABLE notes (body text)")
        connection.execute("INSERT INTO orders SELECT g, 'c' || g % 5, g, g / 3.0 FROM generate_series(1, 50) g")
        connection.execute("INSERT INTO notes VALUES ('a'), ('a'), (NULL)")
        yield connection
