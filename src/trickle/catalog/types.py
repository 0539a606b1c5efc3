"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import BigInteger, DateTime, Dialect, Enum, Integer, Text
from sqlalchemy.types import TypeDecorator

from trickle.errors import InternalError, ParseError

# Only an INTEGER PRIMARY KEY counts up by itself on SQLite.
Identity = BigInteger().with_variant(Integer, "sqlite")

# PostgreSQL stores no NUL in text, and half a surrogate pair has no UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time: aware in Python, in UTC, to the microsecond."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise InternalError("a time without a time zone reached the catalog")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class FreeText(TypeDecorator[str]):
    """Text for people (errors, comments, reasons): what a database cannot hold is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        return None if value is None else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def one_of(values: type[StrEnum]) -> Enum:
    """A column that holds the members of an enumeration by their value; the CHECK is the table's own."""
    return Enum(
        values,
        native_enum=False,
        create_constraint=False,
        length=32,
        values_callable=lambda members: [member.value for member in members],
    )


def check_query(query: str | None) -> None:
    """Refuse a query text that no database can keep as it is."""
    if query is not None and (bad := _UNSTORABLE.search(query)):
        raise ParseError(
            "the query holds a character that cannot be stored",
            detail=f"{bad.group()!r} at character {bad.start() + 1}",
            hint="write it as an escape, for example '\\u0000'",
        )
