"""Every test of the catalog runs on SQLite and on a real PostgreSQL, each time on a database of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.catalog.given import Given
from tests.catalog.together import Workers
from tests.postgres import Postgres
from trickle.catalog import Catalog, file_url
from trickle.catalog.models import Base

# Tables with one row, which the migration made.
SINGLE = {"meta", "scheduler_state"}
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a catalog."""
    if backend == "sqlite":
        yield file_url(tmp_path / "catalog.db")
    else:
        with request.getfixturevalue("postgres").database() as url:
            yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "catalog.db"
    Catalog.open(file_url(path)).close()
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> str:
    postgres.execute("CREATE DATABASE migrated")
    Catalog.open(postgres.url("migrated")).close()
    return "migrated"


@pytest.fixture(scope="session")
def shared_postgres(postgres: Postgres, postgres_template: str) -> str:
    postgres.execute(f"CREATE DATABASE shared TEMPLATE {postgres_template}")
    return "shared"


@pytest.fixture
def postgres_url(postgres: Postgres, shared_postgres: str) -> str:
    """An empty catalog on PostgreSQL: one database, swept before each test, since a new one writes 15 MB."""
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{shared_postgres}' AND pid <> pg_backend_pid()"
    )
    swept = ", ".join(f"trickle.{table}" for table in Base.metadata.tables if table not in SINGLE)
    postgres.execute(f"TRUNCATE {swept} RESTART IDENTITY", shared_postgres)
    postgres.execute(
        "UPDATE trickle.scheduler_state SET ddl_number = 0, paused_at = NULL, paused_by = NULL,"
        " pause_reason = NULL, draining_since = NULL, draining_by = NULL",
        shared_postgres,
    )
    return postgres.url(shared_postgres)


@pytest.fixture
def url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with an empty catalog."""
    if backend == "sqlite":
        return file_url(Path(shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "catalog.db")))
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    opened = Catalog.open(url)
    yield opened
    opened.close()


@pytest.fixture
def postgres_catalog(postgres_url: str) -> Iterator[Catalog]:
    """For what only happens on PostgreSQL, where several write at once."""
    opened = Catalog.open(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def now() -> datetime:
    return NOON


@pytest.fixture
def given(now: datetime) -> Given:
    return Given(now)


@pytest.fixture(scope="session")
def together() -> Iterator[Workers]:
    workers = Workers(4)
    yield workers
    workers.close()
