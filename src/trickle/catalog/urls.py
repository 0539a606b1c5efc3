"""Catalog URLs: which database, through which driver, and how to show it without its secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from trickle.errors import InvalidOption

Backend = Literal["sqlite", "postgresql"]

_DRIVERS: dict[str, str] = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_SECRETS = frozenset({"password", "sslpassword"})


def file_url(path: Path) -> str:
    """The URL of a SQLite catalog in this file, whatever characters the path has.

    >>> file_url(Path("/data/50% off?/catalog.db"))
    'sqlite:////data/50%25 off%3F/catalog.db'
    """
    return URL.create("sqlite", database=str(path.absolute())).render_as_string(hide_password=False)


def parse(url: str) -> URL:
    """The URL with its driver filled in; refuses what is no catalog database."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text may hold a password: it is not repeated.
        raise InvalidOption(
            "the catalog URL cannot be read",
            hint="write sqlite:////absolute/path/catalog.db or postgresql://user:password@host:5432/database",
        ) from None
    if parsed.drivername not in _DRIVERS:
        raise InvalidOption(
            f"the catalog cannot live in {parsed.drivername!r}", hint="use a sqlite: or a postgresql: URL"
        )
    if parsed.drivername.startswith("sqlite") and parsed.database in (None, "", ":memory:"):
        raise InvalidOption("a SQLite catalog needs a file", hint="write sqlite:////absolute/path/catalog.db")
    return parsed.set(drivername=_DRIVERS[parsed.drivername])


def backend(url: URL) -> Backend:
    """Which of the two databases the URL names."""
    return "sqlite" if url.get_backend_name() == "sqlite" else "postgresql"


def shown(url: URL) -> str:
    """The URL for people: no driver, no password, neither in its place nor among the parameters.

    >>> shown(make_url("postgresql+psycopg://ada:secret@db/wh?sslmode=require&password=secret"))
    'postgresql://ada:***@db/wh?sslmode=require'
    """
    plain = url.set(drivername=backend(url)).difference_update_query(_SECRETS)
    return plain.render_as_string(hide_password=True)
