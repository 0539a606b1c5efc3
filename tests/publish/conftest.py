"""A database of its own for every test, and a warehouse beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.conftest import connection as connection
from tests.postgres.conftest import dsn as dsn
from trickle.api import Trickle, connect
from trickle.engine import Engine


@pytest.fixture
def t(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    opened = connect(tmp_path / "warehouse", spark=engine.spark)
    yield opened
    opened.warehouse.catalog.close()


@pytest.fixture
def there(dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of a user of the database."""
    with psycopg.connect(dsn, autocommit=True) as session:
        yield session
