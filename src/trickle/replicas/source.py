"""Reading a PostgreSQL table in Spark tasks: a Python data source over ranges of pages.

Every task has a connection of its own and takes the snapshot that the driver exported and holds open. A range of
pages is read as a range of ``ctid`` of one part, because the same ``ctid`` is in every partition; the driver's lock
keeps rows where they are, and names what they name. What is to be read, the address with its password included,
travels as one option whose name has Spark keep it out of its displays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from trickle.errors import TrickleError
from trickle.postgres.connect import Connection, connected
from trickle.postgres.rows import copy_texts, read_columns
from trickle.postgres.tables import Relkind, SourceTable
from trickle.replicas.shape import from_json, lake_names, to_json

FORMAT = "trickle_postgres"
OPTION = "secret"
FAILURE = "trickle-error:"
"""Stands before an error of ours in the message of an exception from a task."""

PAGES = 4096
"""Pages of a range: 32 MB, as PostgreSQL makes pages."""

_PAGELESS = (Relkind.FOREIGN, Relkind.VIEW)

LOCK_WAIT = "5s"
"""How long a task waits for a lock. Whoever exported the snapshot has one on the table, so a task can only be behind
somebody who waits for that to end, and would wait for ever.
"""


@dataclass(frozen=True)
class Range:
    """Pages of one part: from the first up to but without the last; the last range of a part has no end. A first one
    below 0 stands for all rows of what has no pages.
    """

    schema: str
    name: str
    first: int
    last: int | None

    @property
    def where(self) -> sql.Composable:
        if self.first < 0:
            return sql.SQL("true")
        start = sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({self.first},0)"))
        if self.last is None:
            return start
        return sql.SQL("{} AND ctid < {}::tid").format(start, sql.Literal(f"({self.last},0)"))


def stored_bytes(connection: Connection, table: SourceTable) -> int | None:
    """How much the server stores of a table, long values included; None for what has no pages, of any size."""
    if table.kind in _PAGELESS:
        return None
    parts = [part.oid for part in table.parts]
    row = connection.execute("SELECT sum(pg_table_size(oid)) FROM unnest(%s::oid[]) AS oid", (parts,)).fetchone()
    return int(row[0] or 0) if row is not None else 0


_PAGES = """
SELECT pg_relation_size(c.oid) / current_setting('block_size')::int,
    coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) / current_setting('block_size')::int
FROM pg_class c WHERE c.oid = %s"""


def ranges(connection: Connection, table: SourceTable, pages: int = PAGES) -> list[Range]:
    """What each task reads: about so many pages, with those of the long values that its rows refer to."""
    if table.kind in _PAGELESS:
        return [Range(table.schema, table.name, -1, None)]
    found = []
    for part in table.parts:
        row = connection.execute(_PAGES, (part.oid,)).fetchone()
        own, long = (int(row[0] or 0), int(row[1])) if row is not None else (0, 0)
        step = max(1, pages * own // (own + long)) if long else pages
        starts = range(0, max(own, 1), step)
        ends: list[int | None] = [start + step for start in starts]
        ends[-1] = None
        found += [Range(part.schema, part.name, first, last) for first, last in zip(starts, ends, strict=True)]
    return found


def read_range(connection: Connection, table: SourceTable, piece: Range) -> Iterator[pa.Table]:
    """The rows of a range, with the names of the lake."""
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    query = sql.SQL("SELECT {} FROM ONLY {} WHERE {}").format(
        columns, sql.Identifier(piece.schema, piece.name), piece.where
    )
    names = [column.name for column in table.columns]
    for texts in copy_texts(connection, query, names):
        yield read_columns(texts, table.columns, table.shown).rename_columns(lake_names(names))


def begin_at(connection: Connection, snapshot: str) -> None:
    """Begin a transaction that sees what the snapshot sees."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_WAIT)))


def plan_of(dsn: str, snapshot: str | None, table: SourceTable, pieces: Sequence[Range]) -> str:
    """What the tasks need to know, as one text. Without a snapshot each reads what is there when it begins."""
    place = {"oid": table.oid, "schema": table.schema, "name": table.name}
    return json.dumps(
        {"dsn": dsn, "snapshot": snapshot, **place, "shape": to_json(table), "ranges": [asdict(p) for p in pieces]}
    )


class PostgresSource(DataSource):
    """The data source that Spark knows as ``trickle_postgres``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark calls it so; the schema is ours
        return _Reader(self.options[OPTION])


class _Piece(InputPartition):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Reader(DataSourceReader):
    def __init__(self, plan: str) -> None:
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return [_Piece(number) for number in range(len(json.loads(self._plan)["ranges"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Piece)
        plan: dict[str, Any] = json.loads(self._plan)
        table = from_json(plan["oid"], plan["schema"], plan["name"], plan["shape"])
        try:
            with connected(plan["dsn"]) as connection:
                if plan["snapshot"]:
                    begin_at(connection, plan["snapshot"])
                for rows in read_range(connection, table, Range(**plan["ranges"][partition.number])):
                    yield from rows.to_batches()
        except TrickleError as error:
            # Spark keeps nothing but the text of an exception.
            raise RuntimeError(FAILURE + json.dumps(error.as_dict())) from None
