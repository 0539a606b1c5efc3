"""Capture by triggers, carried out: arming tables, reading their buffers, forgetting what the lake holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from trickle.algebra.weights import WEIGHT
from trickle.errors import InternalError
from trickle.postgres.connect import Connection
from trickle.postgres.rows import copy_texts, read_columns, schema
from trickle.postgres.tables import Relkind, SourceTable
from trickle.sources.postgres import triggers
from trickle.sources.postgres.capture import Bound, Changes, Health, State, position_of
from trickle.sources.postgres.netting import net_texts
from trickle.sources.postgres.triggers import Family, Style

LOCK_TIMEOUT_MS = 5_000
"""How long making triggers may wait for a table: others queue behind it meanwhile."""


LARGE_BYTES = 1 << 20
"""A buffer of this size is emptied as a whole where that is possible: deleted rows are read until they are vacuumed."""


class TriggerCapture:
    """Capture by triggers over one connection, which the caller keeps and closes; it must be in autocommit."""

    mode = "trigger"

    def __init__(self, connection: Connection, style: Style, bound: Bound | None = None) -> None:
        self._connection = connection
        self._style = style
        self._bound = bound or Bound()
        self._read: tuple[SourceTable, ...] = ()

    def arm(self, table: SourceTable) -> None:
        """Make buffer, functions and triggers; those that are there and fit are left alone."""
        if self.trouble(table) is None:
            return
        with self._connection.transaction():
            self._execute(sql.SQL("SELECT set_config('lock_timeout', {}, true)").format(f"{LOCK_TIMEOUT_MS}ms"))
            self._execute(triggers.make_schema(self._style))
            self._remove(table.oid)
            self._execute(triggers.make_buffer(self._style, table))
            self._execute(triggers.make_function(self._style, table, self._family(table)))
            for oid, name in self._tables_of(table):
                for statement in triggers.make_triggers(self._style, table, oid, name):
                    self._execute(statement)

    def disarm(self, table: SourceTable) -> None:
        """Remove triggers, functions and buffer."""
        with self._connection.transaction():
            self._execute(sql.SQL("SELECT set_config('lock_timeout', {}, true)").format(f"{LOCK_TIMEOUT_MS}ms"))
            self._remove(table.oid)

    def position(self) -> str:
        """The snapshot of this moment."""
        return f"{self.mode}:{self._one('SELECT pg_current_snapshot()::text')}"

    def has_more(self, upto: str) -> bool:  # noqa: ARG002 - the same for all
        """A position is always the present."""
        return False

    def loaded(self, snapshot: str) -> str:
        """A position is a snapshot."""
        return f"{self.mode}:{snapshot}"

    def moved(self, after: str, upto: str) -> str:  # noqa: ARG002 - it does not matter where it was
        """Where everything was read up to."""
        return upto

    def must_move(self, after: Iterable[str], upto: str) -> bool:  # noqa: ARG002 - the same for all
        """Buffers that nobody writes to keep nothing."""
        return False

    def changes(
        self, tables: Sequence[SourceTable], after: Mapping[int, str], upto: str
    ) -> Iterator[tuple[SourceTable, Changes]]:
        """What the buffers hold, table by table."""
        self._read = tuple(tables)
        end = position_of(upto, self.mode)
        for table in tables:
            start = position_of(after[table.oid], self.mode)
            found = self._summary(table, start, end)
            if isinstance(found, str):
                yield table, Changes(_empty(table), schema_changed=found)
                continue
            rows, truncated = found
            if rows or truncated is not None:
                yield table, Changes(self._rows(table, start, end, truncated), truncated=truncated is not None)

    def forget(self, upto: str) -> None:
        """Remove what was read by the last ``changes`` from the buffers of its tables."""
        end = position_of(upto, self.mode)
        for table in self._read:
            if not self._emptied(table, end):
                self._execute(triggers.forget(self._style, table.oid, end))

    def health(self, tables: Sequence[SourceTable]) -> list[Health]:
        """Whether triggers and buffers are in their place, and how much waits in them."""
        found = []
        for table in tables:
            trouble = self.trouble(table)
            if trouble is not None:
                found.append(Health(table.shown, State.CRITICAL, trouble))
                continue
            buffer = triggers.buffer_name(self._style, table.oid)
            rows = self._one(sql.SQL("SELECT count(*) FROM {} WHERE op <> 'M'").format(buffer))
            size = self._one(sql.SQL("SELECT pg_total_relation_size({}::regclass)").format(_text(buffer)))
            found.append(Health(table.shown, State.OK, f"{rows} changes wait", rows, size))
        return found

    def trouble(self, table: SourceTable) -> str | None:
        """In words, what is wrong with the triggers of a table; None when they are as they should be."""
        buffer = _text(triggers.buffer_name(self._style, table.oid))
        if self._one(sql.SQL("SELECT to_regclass({})").format(buffer)) is None:
            return "it has no buffer"
        rows = self._connection.execute(
            sql.SQL(
                "SELECT t.tgrelid::bigint, t.tgname FROM pg_trigger t"
                " WHERE t.tgfoid = to_regproc({})::oid AND t.tgenabled <> 'D'"
            ).format(_text(triggers.function_name(self._style, table.oid)))
        ).fetchall()
        for oid, name in self._tables_of(table):
            wanted = set(triggers.trigger_names(self._style, table, oid))
            if missing := sorted(wanted - {trigger for owner, trigger in rows if owner == oid}):
                return f"trigger {missing[0]} on {name.as_string(None)} is missing or disabled"
        return None

    def _remove(self, oid: int) -> None:
        self._execute(triggers.drop_function(self._style, oid))
        self._execute(triggers.drop_buffer(self._style, oid))

    def _tables_of(self, table: SourceTable) -> list[tuple[int, sql.Identifier]]:
        """The tables that triggers are put on: the source, and all that inherit from it, partitions included."""
        rows = self._connection.execute(
            sql.SQL(
                "WITH RECURSIVE part AS (SELECT {}::oid AS oid"
                " UNION SELECT i.inhrelid FROM part p JOIN pg_inherits i ON i.inhparent = p.oid)"
                " SELECT c.oid::bigint, n.nspname, c.relname"
                " FROM part p JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
                " ORDER BY c.oid"
            ).format(table.oid)
        ).fetchall()
        return [(oid, sql.Identifier(namespace, name)) for oid, namespace, name in rows]

    def _family(self, table: SourceTable) -> Family:
        tables = [oid for oid, _ in self._tables_of(table)]
        # Of partitions, only those that are partitioned themselves can have any.
        leaves = {part.oid for part in table.parts} if table.kind is Relkind.PARTITIONED else set()
        parents = [oid for oid in tables if oid not in leaves]
        links = self._one(
            sql.SQL("SELECT count(*) FROM pg_inherits i WHERE i.inhparent = ANY ({}::oid[])").format(parents)
        )
        return Family(tables, parents, links)

    def _summary(self, table: SourceTable, start: str, end: str) -> tuple[int, int | None] | str:
        """The number of rows and the last TRUNCATE between two positions; in words, why that cannot be told."""
        order = sql.SQL("SELECT pg_snapshot_xmax({}::pg_snapshot) <= pg_snapshot_xmax({}::pg_snapshot)")
        if not self._one(order.format(sql.Literal(start), sql.Literal(end))):
            return "the database is older than the replica: it was restored"
        try:
            found = self._connection.execute(triggers.summarise(self._style, table, start, end)).fetchone()
        except psycopg.errors.UndefinedTable:
            return "its buffer is gone"
        assert found is not None
        rows, size, truncated, partly, reshaped, marks = found
        if marks != 1:
            return "its buffer lost its rows: the server crashed, or somebody emptied it or made it anew"
        if reshaped:
            return "its columns or its parts were changed, and rows written meanwhile"
        if partly:
            return "it has several parts, and some or all of them were truncated"
        return self._bound.exceeded(rows, size) or (rows, truncated)

    def _rows(self, table: SourceTable, start: str, end: str, since: int | None) -> pa.Table:
        names = [column.name for column in table.columns]
        query = triggers.read_changes(self._style, table, start, end, since=since)
        parts = []
        for texts in copy_texts(self._connection, query, [f"c{place}" for place in range(len(names) + 1)]):
            signs = pc.if_else(pc.equal(texts.column(0), triggers.INSERTED), 1, -1).cast(pa.int64())
            parts.append(texts.remove_column(0).rename_columns(names).append_column(WEIGHT, signs))
        if not parts:
            return _empty(table)
        found = net_texts(pa.concat_tables(parts), table.key)
        return read_columns(found, table.columns, table.shown).append_column(WEIGHT, found.column(WEIGHT))

    def _emptied(self, table: SourceTable, end: str) -> bool:
        """Empty a buffer at a stroke if nobody is writing and nothing later is in it."""
        buffer = triggers.buffer_name(self._style, table.oid)
        if self._one(sql.SQL("SELECT pg_relation_size({}::regclass)").format(_text(buffer))) < LARGE_BYTES:
            return False
        try:
            with self._connection.transaction():
                self._execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(buffer))
                later = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE NOT pg_visible_in_snapshot(xid, {}::pg_snapshot))")
                made = self._made(buffer)
                if made is None or self._one(later.format(buffer, sql.Literal(end))):
                    return False
                self._execute(triggers.empty(self._style, table.oid, made))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def _made(self, buffer: sql.Composed) -> str | None:
        """The transaction that made a buffer; None when it lost its first row."""
        query = sql.SQL("SELECT xid::text FROM {} WHERE op = {}").format(buffer, triggers.MARK)
        found = self._connection.execute(query).fetchone()
        return None if found is None else str(found[0])

    def _execute(self, statement: sql.Composed) -> None:
        self._connection.execute(statement)

    def _one(self, statement: sql.Composed | str) -> Any:
        found = self._connection.execute(statement).fetchone()
        if found is None:
            raise InternalError("the PostgreSQL server gave no row")
        return found[0]


def _empty(table: SourceTable) -> pa.Table:
    return schema(table.columns).append(pa.field(WEIGHT, pa.int64())).empty_table()


def _text(name: sql.Composed) -> sql.Literal:
    return sql.Literal(name.as_string(None))


def armed_oids(connection: Connection, style: Style) -> Iterable[int]:
    """The sources that have a buffer of this owner."""
    rows = connection.execute(
        sql.SQL(
            "SELECT split_part(c.relname, '_', 2)::bigint"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = {} AND c.relname ~ '^changes_[0-9]+_' AND split_part(c.relname, '_', 3) = {}"
        ).format(style.schema, style.owner)
    )
    return [oid for (oid,) in rows]
