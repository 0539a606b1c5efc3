"""A replica in memory: what ingest does with changes, in few lines, so that capture can be tested without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from psycopg import sql

from trickle.algebra.weights import WEIGHT
from trickle.postgres.connect import Connection, connected
from trickle.postgres.rows import copy_texts, read_columns
from trickle.postgres.tables import SourceTable, describe, describe_oids
from trickle.sources.postgres.capture import Changes
from trickle.sources.postgres.wal import WalCapture

NAME = "trickle_test"

Contents = Counter[tuple[Any, ...]]


def nothing() -> None:
    pass


class SmallLake:
    """Replicas of tables of one database, each a multiset of rows."""

    def __init__(self, connection: Connection, dsn: str, name: str = NAME, **options: int) -> None:
        self.connection = connection
        self.dsn = dsn
        self.name = name
        self.options = options
        self.tables: dict[int, SourceTable] = {}
        self.rows: dict[int, Contents] = {}
        self.positions: dict[int, str] = {}

    @property
    def capture(self) -> WalCapture:
        """A new one each time: nothing may depend on what a process remembers."""
        return WalCapture(self.connection, self.name, **self.options)

    def attach(self, name: str, *, schema: str = "public", meanwhile: Callable[[], object] = nothing) -> SourceTable:
        """Arm, take a snapshot, let others write, load."""
        table = describe(self.connection, schema, name)
        self.capture.arm(table)
        with connected(self.dsn) as loader:
            loader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            snapshot = str((loader.execute("SELECT pg_current_snapshot()::text").fetchone() or "")[0])
            meanwhile()
            self.rows[table.oid] = contents(loader, table)
        self.positions[table.oid] = self.capture.loaded(snapshot)
        self.tables[table.oid] = table
        return table

    def ingest(self, upto: str | None = None, *, forget: bool = True) -> dict[str, Changes]:
        """Take in everything, at one position for all tables."""
        upto = upto or self.capture.position()
        found = dict(self.peek(upto))
        for name, changes in found.items():
            oid = next(oid for oid, table in self.tables.items() if table.name == name)
            assert changes.schema_changed is None
            apply(self.rows[oid], changes)
        self.positions = {oid: self.capture.moved(after, upto) for oid, after in self.positions.items()}
        if forget:
            self.capture.forget(upto)
        return found

    def peek(self, upto: str | None = None) -> list[tuple[str, Changes]]:
        """What ingest would take in."""
        found = self.capture.changes(list(self.tables.values()), self.positions, upto or self.capture.position())
        return [(table.name, changes) for table, changes in found]

    def check(self) -> None:
        """Every replica equals its source."""
        for oid, table in describe_oids(self.connection, self.tables).items():
            assert self.rows[oid] == contents(self.connection, table), table.shown


def contents(connection: Connection, table: SourceTable) -> Contents:
    names = [column.name for column in table.columns]
    query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(map(sql.Identifier, names)), table.quoted)
    found: Contents = Counter()
    for piece in copy_texts(connection, query, names):
        found.update(tuples(read_columns(piece, table.columns, table.shown)))
    return found


def tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[hashable(value) for value in column.to_pylist()] for column in rows.columns]
    return list(zip(*columns, strict=True))


def hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def apply(replica: Contents, changes: Changes) -> None:
    """The changes put into a replica. Nothing may go that is not there."""
    if changes.truncated:
        replica.clear()
    names = changes.rows.column_names[:-1]
    rows = tuples(changes.rows.drop_columns([WEIGHT]))
    weights = changes.rows.column(WEIGHT).to_pylist()
    if not changes.by_key:
        for row, weight in zip(rows, weights, strict=True):
            replica[row] += weight
        assert all(count >= 0 for count in replica.values())
        replica += Counter()
        return
    places = [names.index(column) for column in changes.key]
    known = {tuple(row[place] for place in places): row for row in replica}
    olds = [known[tuple(row[p] for p in places)] if w < 0 else None for row, w in zip(rows, weights, strict=True)]
    for kept in changes.kept.to_pylist() if changes.kept is not None else []:
        old, place = olds[kept["old"]], names.index(kept["column"])
        assert old is not None
        new = rows[kept["new"]]
        assert new[place] is None
        rows[kept["new"]] = (*new[:place], old[place], *new[place + 1 :])
    replica.subtract(old for old in olds if old is not None)
    replica.update(row for row, weight in zip(rows, weights, strict=True) if weight > 0)
    assert all(count in (0, 1) for count in replica.values())
    replica += Counter()
