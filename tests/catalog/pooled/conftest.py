"""The catalog on PostgreSQL behind PgBouncer in transaction mode."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.postgres import Postgres
from tests.postgres.pooling import LONG, running_pgbouncer

# Not part of ``make test``: PgBouncer is a program that not every machine has.
collect_ignore_glob = [] if LONG else ["test_*.py"]


@pytest.fixture(scope="session")
def bouncer(postgres: Postgres) -> Iterator[int]:
    with running_pgbouncer(postgres) as port:
        yield port


def through(port: int, url: str) -> str:
    """The address of a database, through the pooler."""
    return f"postgresql://postgres@127.0.0.1:{port}/{urlsplit(url).path.lstrip('/')}"


@pytest.fixture(params=["pgbouncer"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(bouncer: int, postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield through(bouncer, url)


@pytest.fixture
def url(bouncer: int, postgres_url: str) -> str:
    return through(bouncer, postgres_url)
