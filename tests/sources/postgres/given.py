"""A source whose changes a test reads, and what its replica would hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
from psycopg import sql

from trickle.algebra.weights import WEIGHT
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable, describe
from trickle.sources.postgres.buffers import TriggerCapture
from trickle.sources.postgres.capture import Changes
from trickle.sources.postgres.triggers import Style, buffer_name

OWN = Style("0a")
"""Buffers as they are made where nothing else is said."""


class Followed:
    """A table that is armed, and its contents as capture tells them."""

    def __init__(self, connection: Connection, name: str, schema: str = "public", style: Style | None = None) -> None:
        self.connection = connection
        self.style = style or OWN
        self.capture = TriggerCapture(connection, self.style)
        self.table: SourceTable = describe(connection, schema, name)
        self.capture.arm(self.table)
        self.position = self.capture.position()
        self.rows = self.source()

    def source(self) -> Counter[Any]:
        """The rows of the table itself, now."""
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in self.table.columns)
        found = self.connection.execute(sql.SQL("SELECT {} FROM {}").format(names, self.table.quoted))
        return Counter(tuple(map(_plain, row)) for row in found)

    def ingest(self, upto: str | None = None) -> Changes | None:
        """Read what changed up to now, and forget it."""
        end = upto or self.capture.position()
        found = list(self.capture.changes([self.table], {self.table.oid: self.position}, end))
        changes = found[0][1] if found else None
        if changes is not None and changes.schema_changed is None:
            if changes.truncated:
                self.rows = Counter()
            for row in changes.rows.to_pylist():
                weight = row.pop(WEIGHT)
                self.rows[tuple(map(_plain, row.values()))] += weight
            assert all(count >= 0 for count in self.rows.values())
            self.rows = +self.rows
        self.capture.forget(end)
        self.position = end
        return changes

    def buffered(self) -> int:
        """Rows that wait in the buffer, visible or not yet in any position."""
        name = buffer_name(self.style, self.table.oid)
        found = self.connection.execute(sql.SQL("SELECT count(*) FROM {} WHERE op <> 'M'").format(name)).fetchone()
        assert found is not None
        return int(found[0])


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def session(dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Another session, with transactions of its own."""
    return psycopg.connect(dsn, autocommit=False)
