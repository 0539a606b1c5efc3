"""One process works on the replicas of a database at a time: the database itself keeps the lock.

It is held by a session and goes with it, so that a process that dies leaves none behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from trickle.errors import ConcurrentModification
from trickle.postgres.connect import Connection

WAIT_MS = 60_000
_SPACE = int.from_bytes(b"tric") & 0x7FFFFFFF


@contextmanager
def one_at_a_time(connection: Connection, database: str, wait_ms: int = WAIT_MS) -> Iterator[None]:
    """Hold the lock for the block; ConcurrentModification when another process keeps it for too long."""
    key = sql.SQL("{}, hashtext({})").format(_SPACE, sql.Literal(database.lower()))
    connection.execute(sql.SQL("SELECT set_config('lock_timeout', {}, false)").format(f"{wait_ms}ms"))
    try:
        connection.execute(sql.SQL("SELECT pg_advisory_lock({})").format(key))
    except psycopg.errors.LockNotAvailable:
        raise ConcurrentModification(
            f"another process works on the replicas of {database}", hint="try again in a moment"
        ) from None
    finally:
        if not connection.broken and not connection.closed:
            connection.execute("SELECT set_config('lock_timeout', '0', false)")
    try:
        yield
    finally:
        # A session that is gone has let go of it.
        if not connection.broken and not connection.closed:
            connection.execute(sql.SQL("SELECT pg_advisory_unlock({})").format(key))
