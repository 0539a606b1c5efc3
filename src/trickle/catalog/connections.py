"""Connections to the two databases, and how a transaction begins on each."""

from __future__ import annotations

import json
import sqlite3
import time
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from trickle.catalog.migrate import POSTGRES_SCHEMA

LOCK_SECONDS = 30

_BEGIN = "trickle_begin"
SQLITE_READ: dict[str, Any] = {_BEGIN: ("PRAGMA query_only = ON", "BEGIN")}
SQLITE_WRITE: dict[str, Any] = {_BEGIN: ("PRAGMA query_only = OFF", "BEGIN IMMEDIATE")}
# A table that a migration rebuilds must not take its children with it.
SQLITE_MIGRATE: dict[str, Any] = {_BEGIN: ("PRAGMA query_only = OFF", "PRAGMA foreign_keys = OFF", "BEGIN IMMEDIATE")}
POSTGRES_READ: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
POSTGRES_WRITE: dict[str, Any] = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}

# libpq waits for ever on a host that is gone unless told otherwise; the URL may say something else.
_POSTGRES_DEFAULTS: dict[str, str | int] = {
    "application_name": "trickle",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_COMMON: dict[str, Any] = {
    # NaN is no JSON: SQLite would keep it, PostgreSQL would not.
    "json_serializer": partial(json.dumps, separators=(",", ":"), allow_nan=False),
    # Storage options may hold keys.
    "hide_parameters": True,
    "pool_size": 8,
    "max_overflow": 24,
    "pool_timeout": LOCK_SECONDS,
}


def sqlite_engine(url: URL) -> Engine:
    """Connections to a SQLite file, with transactions that begin when and how we say."""
    engine = create_engine(url, connect_args={"isolation_level": None, "timeout": LOCK_SECONDS}, **_COMMON)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    # In NORMAL a power cut may lose an intent whose Delta commits are already on disk.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    for statement in connection.get_execution_options()[_BEGIN]:
        connection.exec_driver_sql(statement)


def use_write_ahead_log(path: str) -> None:
    """Let readers and a writer work side by side; the mode is kept in the file.

    SQLite does not wait for a lock on this statement, so that processes which open a new catalog at once do it here.
    """
    connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)
    give_up = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
    finally:
        connection.close()


def postgres_engine(url: URL) -> Engine:
    """Connections to PostgreSQL that also work through a pooler in transaction mode: no prepared statements."""
    defaults = {name: value for name, value in _POSTGRES_DEFAULTS.items() if name not in url.query}
    engine = create_engine(
        url,
        connect_args={"prepare_threshold": None, **defaults},
        use_native_hstore=False,
        pool_pre_ping=True,
        **_COMMON,
    )
    return engine.execution_options(schema_translate_map={None: POSTGRES_SCHEMA})
