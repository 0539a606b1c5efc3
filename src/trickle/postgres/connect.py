"""Connections to a PostgreSQL server that is a source or a target, never to the catalog.

The settings of a session decide how PostgreSQL spells values, and every text that Trickle parses depends on them; so
each connection sets all of them, whatever the role or the database has as its default. ``row_security = off`` makes a
read fail that a policy would thin out: a replica holds all rows or says why it cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo, sql

from trickle.errors import InvalidOption, SourceRefused
from trickle.postgres.failures import translated

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 14
"""The oldest major version that is served."""

SPELLING = {
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "intervalstyle": "iso_8601",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "lc_monetary": "C",
    # Names that a text holds (regclass and its kin) are written with their schema.
    "search_path": "pg_catalog, pg_temp",
    "row_security": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # A session may do nothing but keep a lock.
    "idle_session_timeout": "0",
    # Who waits for a lock must see afterwards what the others have written.
    "default_transaction_isolation": "read committed",
}
"""The settings of every session; the first ones make texts the same wherever they are written."""

STEADY = {name: SPELLING[name] for name in list(SPELLING)[: list(SPELLING).index("search_path")]}
"""The settings that decide what values look like, without those of the session's own affairs."""

_SECRETS = {"password", "sslpassword", "passfile"}


def shown(dsn: str) -> str:
    """The address for people: user, host, port and database, never a password.

    >>> shown("postgresql://ada:secret@db:5433/shop?sslmode=require")
    'postgresql://ada:***@db:5433/shop'
    >>> shown("host=/run/pg dbname=shop")
    'postgresql://@/shop?host=/run/pg'
    """
    parts = _parts(dsn)
    user = parts.get("user", "") + (":***" if _SECRETS.intersection(parts) else "")
    host, port = parts.get("host", ""), parts.get("port", "")
    database = parts.get("dbname", "")
    if host.startswith("/"):
        return f"postgresql://{user}@/{database}?host={host}" + (f"&port={port}" if port else "")
    place = host + (f":{port}" if port else "")
    return f"postgresql://{user}{'@' if user else ''}{place}/{database}"


def check_dsn(dsn: str) -> str:
    """The address as given; refuses what libpq cannot read, or reads as something else than was meant."""
    _parts(dsn)
    return dsn


_URI = re.compile(r"(?:postgresql|postgres)://([^/?]*)([^?]*)(.*)", re.DOTALL)
_PORTS = re.compile(r"[0-9]*(,[0-9]*)*")


def _parts(dsn: str) -> dict[str, str]:
    """What an address says, by name. An error never repeats any of it: the text may hold a password."""
    try:
        found = {name: str(value) for name, value in conninfo.conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError:
        raise InvalidOption(
            "the address of the PostgreSQL database cannot be read",
            hint="write postgresql://user:password@host:5432/database",
        ) from None
    if _is_mistaken(dsn) or not _PORTS.fullmatch(found.get("port", "")):
        raise InvalidOption(
            "the address of the PostgreSQL database can be read in two ways",
            detail="parts of a password would be taken for host, port or database",
            hint="in a user or password, write %40 for @, %2F for /, %3A for : and %3F for ?",
        )
    return found


def _is_mistaken(dsn: str) -> bool:
    """Whether an @ is where it ends no user and password: those were cut off at a character that means something.

    >>> [_is_mistaken(f"postgresql://ada:{word}@db/x") for word in ("plain", "p@ss", "se/cret", "p%40ss")]
    [False, True, True, False]
    """
    match = _URI.match(dsn)
    if match is None:
        return False
    place, path, rest = match.groups()
    return place.count("@") > 1 or "@" in path or ("@" in rest and "@" not in place)


@contextmanager
def connected(dsn: str, *, autocommit: bool = True) -> Iterator[Connection]:
    """A connection for the block. What goes wrong with the server inside becomes one of Trickle's errors."""
    place = shown(dsn)
    with translated(place), open_connection(dsn, autocommit=autocommit) as connection:
        yield connection


def open_connection(dsn: str, *, autocommit: bool = True) -> Connection:
    """A connection that the caller closes, with the spelling set and the version checked."""
    place = shown(dsn)
    timeout = {} if "connect_timeout" in _parts(dsn) else {"connect_timeout": "10"}
    with translated(place):
        connection = psycopg.connect(
            conninfo.make_conninfo(dsn, client_encoding="UTF8", application_name="trickle", **timeout),
            autocommit=True,
            # A pooler in transaction mode hands prepared statements to others.
            prepare_threshold=None,
        )
        try:
            check_version(connection.info.server_version, place)
            settings = [
                sql.SQL("set_config({}, {}, false)").format(sql.Literal(name), sql.Literal(value))
                for name, value in SPELLING.items()
            ]
            connection.execute(sql.SQL("SELECT ") + sql.SQL(", ").join(settings))
            connection.autocommit = autocommit
        except BaseException:
            connection.close()
            raise
    return connection


def check_version(number: int, place: str) -> None:
    """Refuse a server that is too old.

    >>> check_version(180001, "here")
    """
    if number < OLDEST * 10_000:
        raise SourceRefused(
            f"the PostgreSQL server at {place} is too old",
            detail=f"it is version {number // 10_000}.{number % 10_000}, and Trickle needs {OLDEST} or newer",
            hint="upgrade the server",
        )


def check_writable(connection: Connection, place: str) -> None:
    """Refuse a standby: triggers and slots belong to the primary."""
    found = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    if found is not None and found[0]:
        raise SourceRefused(
            f"the PostgreSQL server at {place} is a standby",
            detail="changes are captured on the primary",
            hint="give the address of the primary, for example with target_session_attrs=read-write",
        )
