"""A database of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres
from trickle.postgres.connect import Connection, connected


@pytest.fixture
def dsn(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with connected(dsn) as connection:
        yield connection
