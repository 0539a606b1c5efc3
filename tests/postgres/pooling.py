"""A real PgBouncer in transaction mode before a PostgreSQL of the tests; Debian's package has it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.postgres import Postgres

PROGRAM = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
LONG = bool(os.environ.get("TRICKLE_POSTGRES_LONG"))
"""Whether the longer tests with PostgreSQL are wanted: ``make test-postgres-long``."""


@contextmanager
def running_pgbouncer(postgres: Postgres, *, pool_size: int = 3) -> Iterator[int]:
    """The port of a PgBouncer with few connections to the server, so that processes have to share them."""
    assert PROGRAM is not None, "pgbouncer is not installed: apt-get install pgbouncer"
    home = Path(tempfile.mkdtemp(prefix="trickle-bouncer-"))
    port = _free_port()
    (home / "users.txt").write_text('"postgres" ""\n')
    (home / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"* = host={postgres.socket} port=5432 user=postgres\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "pool_mode = transaction\n"
        f"default_pool_size = {pool_size}\nmax_client_conn = 200\nserver_check_delay = 0\n"
        f"auth_type = any\nauth_file = {home}/users.txt\npidfile = {home}/pid\nlogfile = {home}/log\n"
    )
    # It refuses to run as root, and must reach the server's socket.
    owner = postgres.data.stat().st_uid
    for path in (home, *home.iterdir()):
        os.chown(path, owner, -1)
    process = subprocess.Popen([PROGRAM, "-q", str(home / "pgbouncer.ini")], user=owner)
    try:
        _await(f"postgresql://postgres@127.0.0.1:{port}/postgres")
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)
        shutil.rmtree(home, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await(url: str, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
