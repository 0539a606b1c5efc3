"""Names of relations: validated once, compared without case, quoted everywhere.

A name has a schema and a table part. ``orders`` is short for ``default.orders``. Comparison ignores case, as Spark
does; the spelling of the creator is kept for display. Schemas come into being with their first table.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from trickle.errors import InvalidName

DEFAULT_SCHEMA = "default"
SYSTEM_SCHEMA = "trickle"
INTERNAL_PREFIX = "__trickle_"
MAX_LENGTH = 128

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Delta tables without column mapping cannot hold these in a column name.
_NOT_IN_COLUMNS = set(" ,;{}()\n\t=")


def quote(identifier: str) -> str:
    """Quote an identifier for Spark SQL.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + identifier.replace("`", "``") + "`"


def _check(part: str, what: str) -> None:
    if not part.strip():
        raise InvalidName(f"empty {what} name", hint=f"give the {what} a name of 1 to {MAX_LENGTH} characters")
    if len(part) > MAX_LENGTH:
        raise InvalidName(
            f"{what} name is too long",
            detail=f"{part[:40]}... has {len(part)} characters",
            hint=f"use at most {MAX_LENGTH} characters",
        )
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in part):
        raise InvalidName(f"{what} name holds a control character", detail=repr(part))
    if part.lower().startswith(INTERNAL_PREFIX):
        raise InvalidName(
            f"{what} name {part!r} is reserved", hint=f"names that begin with {INTERNAL_PREFIX} belong to Trickle"
        )


@dataclass(frozen=True, order=True)
class TableName:
    """A relation's name. Equality and hash ignore case."""

    schema_key: str = field(init=False, repr=False)
    table_key: str = field(init=False, repr=False)
    schema: str = field(compare=False)
    table: str = field(compare=False)

    def __post_init__(self) -> None:
        _check(self.schema, "schema")
        _check(self.table, "table")
        object.__setattr__(self, "schema_key", self.schema.lower())
        object.__setattr__(self, "table_key", self.table.lower())

    @staticmethod
    def of(parts: Iterable[str]) -> TableName:
        """A name from its parts, one or two."""
        match list(parts):
            case [table]:
                return TableName(DEFAULT_SCHEMA, table)
            case [schema, table]:
                return TableName(schema, table)
            case other:
                raise InvalidName(
                    f"a name has one or two parts, not {len(other)}",
                    detail=".".join(other),
                    hint="write table or schema.table",
                )

    @property
    def is_system(self) -> bool:
        return self.schema_key == SYSTEM_SCHEMA

    @property
    def quoted(self) -> str:
        """The name as Spark SQL, always in two parts."""
        return f"{quote(self.schema)}.{quote(self.table)}"

    def __str__(self) -> str:
        parts = [self.table] if self.schema_key == DEFAULT_SCHEMA else [self.schema, self.table]
        return ".".join(p if _PLAIN.match(p) else quote(p) for p in parts)


def check_columns(columns: Iterable[str]) -> None:
    """Refuse column names that a Delta table cannot hold, and two that differ in case only."""
    seen: dict[str, str] = {}
    for column in columns:
        _check(column, "column")
        bad = sorted(_NOT_IN_COLUMNS.intersection(column))
        if bad:
            raise InvalidName(
                f"column name {column!r} holds {bad[0]!r}",
                hint="Delta tables do not allow space , ; { } ( ) = tab or newline in column names: add an alias",
            )
        if column.lower() in seen:
            raise InvalidName(f"column {column!r} is there twice", detail=f"the other one is {seen[column.lower()]!r}")
        seen[column.lower()] = column


def visible(columns: Iterable[str]) -> list[str]:
    """The columns that readers see: those that are not Trickle's own."""
    return [column for column in columns if not column.startswith(INTERNAL_PREFIX)]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant.

    >>> nearest("ordres", ["customers", "orders"])
    'orders'
    """
    by_key = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else None
