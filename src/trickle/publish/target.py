"""The table in PostgreSQL, changed by weighted rows.

A change is copied into a table of the session, netted there (rows that cannot be compared on the way here are, by
PostgreSQL), and applied. Rows to delete are found by the key of the table where it has one. Otherwise a row is known by
all of its columns, and of equal ones as many go as the weight says; an index over the hash of a row finds them. That
every row to delete was there is checked: a table that somebody else wrote into is noticed, and brought back in order.

A reload is a change too: all rows that should be there with the weight +1, all that are with -1. So the table is never
emptied or made anew, and its indexes, rights, triggers and policies stay, and so do the rows that are right already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql

from trickle.algebra.names import INTERNAL_PREFIX
from trickle.algebra.weights import WEIGHT
from trickle.errors import InvalidData, NegativeMultiplicity
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable
from trickle.publish.types import Column, copy_lines

_GIVEN = sql.Identifier("pg_temp", "trickle_given")
_NET = sql.Identifier("pg_temp", "trickle_net")
_WEIGHT = sql.Identifier(WEIGHT)
_HASH = sql.Identifier(INTERNAL_PREFIX + "hash")
_PLACE = sql.Identifier(INTERNAL_PREFIX + "place")


@dataclass(frozen=True)
class Applied:
    """How many rows came and went; one that was updated did both."""

    inserted: int
    deleted: int


@dataclass(frozen=True)
class Target:
    """A table that rows are published to."""

    connection: Connection
    table: SourceTable
    columns: tuple[Column, ...]
    """The published ones; a user's table may have generated ones besides."""

    @property
    def _names(self) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(column.name) for column in self.columns)

    def _of(self, alias: str) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(alias, column.name) for column in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row, where a unique index says so; empty when all of them do."""
        published = {column.name for column in self.columns}
        return self.table.key if published.issuperset(self.table.key) else ()

    def is_empty(self) -> bool:
        """Whether the table has no row."""
        found = self.connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(self.table.quoted))
        return found.fetchone() is None

    def copy_first(self, batches: Iterable[pa.Table]) -> Applied:
        """Fill an empty table with rows of weight 1."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(self.table.quoted, self._names)
        return Applied(self._copy(statement, batches, ()), 0)

    def take(self, batches: Iterable[pa.Table], *, against_all: bool = False) -> None:
        """Copy weighted rows in; ``against_all``: they are what should be there, and what is there comes off."""
        self.connection.execute(
            sql.SQL("CREATE TEMPORARY TABLE trickle_given ON COMMIT DROP AS SELECT {}, 0::bigint AS {} FROM {}").format(
                self._names, _WEIGHT, self.table.quoted
            )
            + sql.SQL(" WITH NO DATA")
        )
        statement = sql.SQL("COPY {} ({}, {}) FROM STDIN").format(_GIVEN, self._names, _WEIGHT)
        self._copy(statement, batches, (WEIGHT,))
        if against_all:
            self.connection.execute(
                sql.SQL("INSERT INTO {} SELECT {}, -1 FROM {}").format(_GIVEN, self._names, self.table.quoted)
            )
        self.connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE trickle_net ON COMMIT DROP AS SELECT {names}, {hash_of} AS {hash},"
                " pg_catalog.sum({weight})::bigint AS {weight}, pg_catalog.row_number() OVER () AS {place}"
                " FROM {given} GROUP BY {names} HAVING pg_catalog.sum({weight}) <> 0"
            ).format(
                names=self._names,
                hash_of=_hash(self._names),
                hash=_HASH,
                weight=_WEIGHT,
                place=_PLACE,
                given=_GIVEN,
            )
        )
        self.connection.execute(sql.SQL("ANALYZE {}").format(_NET))

    def _copy(self, statement: sql.Composed, batches: Iterable[pa.Table], beside: Sequence[str]) -> int:
        rows = 0
        with self.connection.cursor().copy(statement) as copy:
            for batch in batches:
                copy.write(copy_lines(batch, self.columns, beside, self.table.shown))
                rows += batch.num_rows
        return rows

    def apply(self) -> Applied:
        """Change the table by what was taken; NegativeMultiplicity when a row to delete is not there."""
        return self._by_key() if self.key else self._by_row()

    def _by_row(self) -> Applied:
        wanted = self._count(sql.SQL("SELECT pg_catalog.sum(-{w}) FROM {net} WHERE {w} < 0"))
        deleted = self._run(
            "WITH copies AS ("
            " SELECT t.tableoid AS part, t.ctid AS place, n.{w} AS weight,"
            " pg_catalog.row_number() OVER (PARTITION BY n.{place}) AS copy"
            " FROM {net} n JOIN {table} t ON {hash_of} = n.{hash} AND {same} WHERE n.{w} < 0)"
            " DELETE FROM {table} t USING copies c WHERE c.copy <= -c.weight"
            " AND t.tableoid = c.part AND t.ctid = c.place",
            hash_of=_hash(self._of("t")),
            same=_same(self.columns),
        )
        if deleted != wanted:
            raise _missing(self.table, wanted - deleted, wanted)
        return Applied(self._insert(sql.SQL("TRUE")), deleted)

    def _by_key(self) -> Applied:
        """Rows of one key are updated: who has triggers on the table sees what happened."""
        key = [sql.Identifier(name) for name in self.key]
        self._check_key(key)
        matches = _equal(key, "t", "n")
        other = sql.SQL(
            "EXISTS (SELECT FROM {net} o WHERE {same} AND pg_catalog.sign(o.{w}) = -pg_catalog.sign(n.{w}))"
        ).format(net=_NET, same=_equal(key, "o", "n"), w=_WEIGHT)
        wanted = self._count(sql.SQL("SELECT pg_catalog.count(*) FROM {net} WHERE {w} < 0"))
        rest = [column.name for column in self.columns if column.name not in self.key]
        in_place = bool(rest) and self._has_one_unique_index()
        gone = sql.SQL("NOT {}").format(other) if in_place else sql.SQL("TRUE")
        deleted = self._run(
            "DELETE FROM {table} t USING {net} n WHERE n.{w} < 0 AND {matches} AND {gone}", matches=matches, gone=gone
        )
        updated = 0
        if in_place:
            pairs = [sql.SQL("{} = n.{}").format(sql.Identifier(name), sql.Identifier(name)) for name in rest]
            updated = self._run(
                "UPDATE {table} t SET {pairs} FROM {net} n WHERE n.{w} > 0 AND {matches} AND {other}",
                pairs=sql.SQL(", ").join(pairs),
                matches=matches,
                other=other,
            )
        if deleted + updated != wanted:
            raise _missing(self.table, wanted - deleted - updated, wanted)
        return Applied(updated + self._insert(gone), deleted + updated)

    def _check_key(self, key: Sequence[sql.Identifier]) -> None:
        names = sql.SQL(", ").join(key)
        found = self.connection.execute(
            sql.SQL(
                "SELECT FROM {} GROUP BY pg_catalog.sign({}), {} HAVING pg_catalog.sum(pg_catalog.abs({})) > 1 LIMIT 1"
            ).format(_NET, _WEIGHT, names, _WEIGHT)
        )
        if found.fetchone() is not None:
            raise InvalidData(
                f"the rows of the stream table are not unique by the key of {self.table.shown}",
                detail="key: " + ", ".join(self.key),
                hint="drop the key of the published table, or make the query give one row for each",
            )

    def _has_one_unique_index(self) -> bool:
        """Values that rows swap would be there twice for a moment, in an index that is not the key."""
        found = self.connection.execute(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_index WHERE indrelid = %s::oid AND indisunique",
            (self.table.oid,),
        ).fetchone()
        return found is not None and found[0] == 1

    def _insert(self, condition: sql.Composable) -> int:
        return self._run(
            "INSERT INTO {table} ({names}) SELECT {given} FROM {net} n, pg_catalog.generate_series(1, n.{w})"
            " WHERE n.{w} > 0 AND {condition}",
            names=self._names,
            given=self._of("n"),
            condition=condition,
        )

    def _run(self, text: str, **parts: sql.Composable) -> int:
        statement = sql.SQL(text).format(
            table=self.table.quoted, net=_NET, w=_WEIGHT, hash=_HASH, place=_PLACE, **parts
        )
        return self.connection.execute(statement).rowcount

    def _count(self, query: sql.SQL) -> int:
        found = self.connection.execute(query.format(net=_NET, w=_WEIGHT)).fetchone()
        return int(found[0] or 0) if found is not None else 0

    def index(self, name: str) -> None:
        """Have rows found by their hash, where the table has no key; again after its columns changed."""
        self.connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(self.table.schema, name)))
        if not self.key:
            self.connection.execute(
                sql.SQL("CREATE INDEX {} ON {} (({}))").format(
                    sql.Identifier(name), self.table.quoted, _hash(self._names)
                )
            )


def _hash(columns: sql.Composable) -> sql.Composed:
    return sql.SQL("pg_catalog.hash_record_extended(ROW({}), 0)").format(columns)


def _same(columns: Sequence[Column]) -> sql.Composed:
    pairs = [
        sql.SQL("t.{name} IS NOT DISTINCT FROM n.{name}").format(name=sql.Identifier(column.name)) for column in columns
    ]
    return sql.SQL(" AND ").join(pairs)


def _equal(key: Sequence[sql.Identifier], left: str, right: str) -> sql.Composed:
    pairs = [sql.SQL("{}.{} = {}.{}").format(sql.Identifier(left), name, sql.Identifier(right), name) for name in key]
    return sql.SQL(" AND ").join(pairs)


def _missing(table: SourceTable, missing: int, wanted: int) -> NegativeMultiplicity:
    return NegativeMultiplicity(
        f"somebody else wrote into {table.shown}",
        detail=f"{missing} of {wanted} rows to delete are not there",
        hint="it is brought back in order; take away the right to write into it",
    )
