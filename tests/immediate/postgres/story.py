"""A database with stream tables, compared with PostgreSQL's own answers after every statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from psycopg import Connection

from trickle.immediate.postgres import Installed, drop, install


@dataclass
class Story:
    """Statements on a database; after each, every stream table has the rows of its query."""

    connection: Connection[Any]
    queries: dict[str, str] = field(default_factory=dict)

    def install(self, name: str, query: str, **options: Any) -> Installed:
        """Make a stream table."""
        made = install(self.connection, name, query, **options)
        self.queries[f'"{options.get("schema", "public")}"."{name.replace(chr(34), chr(34) * 2)}"'] = query
        self.check("the start")
        return made

    def drop(self, name: str, **options: Any) -> None:
        """Remove a stream table."""
        drop(self.connection, name, **options)
        del self.queries[f'"public"."{name}"']

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        for statement in statements:
            self.connection.execute(statement)
            self.check(statement)

    def check(self, after: str) -> None:
        """Compare all stream tables with their queries."""
        for table, query in self.queries.items():
            columns, expected = self._rows(query)
            listed = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
            _, stored = self._rows(f"SELECT {listed} FROM {table}")
            missing, surplus = expected - stored, stored - expected
            assert not missing, f"{table} after {after}: missing {list(missing)[:3]}, too many {list(surplus)[:3]}"
            assert not surplus, f"{table} after {after}: too many {list(surplus)[:3]}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def _rows(self, query: str) -> tuple[Sequence[str], Counter[tuple[str, ...]]]:
        cursor = self.connection.execute(query)
        assert cursor.description is not None
        rows = Counter(tuple(map(_plain, row)) for row in cursor.fetchall())
        return [column.name for column in cursor.description], rows


def _plain(value: Any) -> str:
    """A value as something that can be compared: NaN equals NaN, and floating noise is none."""
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    return repr(value.normalize()) if isinstance(value, Decimal) and not value.is_nan() else repr(value)
