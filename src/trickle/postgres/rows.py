"""Rows out of PostgreSQL as Arrow.

COPY hands out rows as CSV, which pyarrow reads in bulk; of all columns as texts first, because a text is what
``types.read_texts`` can check and, where it does not fit, name. Whole rows are gathered up to a number of bytes, so
that memory is bounded by that and not by the table.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from trickle.errors import InvalidData
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceColumn

BATCH_BYTES = 16 * 1024 * 1024
"""Text that is turned into Arrow at once."""


def copy_texts(
    connection: Connection, query: sql.Composable, names: Sequence[str], batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.Table]:
    """The rows of a query as texts, in batches; no batch when there are no rows. ``names`` name its columns."""
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    for text in _copied(connection, statement.as_bytes(connection), batch_bytes):
        yield _from_csv(text, names)


def _copied(connection: Connection, statement: bytes, batch_bytes: int) -> Iterator[bytes]:
    """What COPY sends, in pieces of whole rows. Every row is a message: psycopg's own loop takes longer for one than
    everything else here together, so libpq is asked directly.
    """
    link = connection.pgconn
    _check(link, link.exec_(statement), ExecStatus.COPY_OUT)
    waiting: list[bytes | bytearray | memoryview] = []
    size = 0
    ended = False
    try:
        while True:
            length, row = link.get_copy_data(0)
            if length <= 0:
                break
            waiting.append(row)
            size += length
            if size >= batch_bytes:
                yield b"".join(waiting)
                waiting, size = [], 0
        result = link.get_result()
        ended = link.get_result() is None
        _check(link, result, ExecStatus.COMMAND_OK)
    finally:
        if not ended:
            # Nobody wants the rest of it, and nothing else can be asked before it is read.
            connection.close()
    if waiting:
        yield b"".join(waiting)


def _check(link: PGconn, result: PGresult | None, wanted: ExecStatus) -> None:
    if result is None or link.status == ConnStatus.BAD:
        # A server that goes away gives no code.
        raise psycopg.OperationalError(link.get_error_message())
    if result.status != wanted:
        raise psycopg.errors.error_from_result(result)


def _from_csv(text: bytes, names: Sequence[str]) -> pa.Table:
    try:
        return pyarrow.csv.read_csv(
            io.BytesIO(text),
            # One block: a row may be of any length.
            read_options=pyarrow.csv.ReadOptions(column_names=list(names), block_size=len(text) + 1, use_threads=False),
            # A row of one NULL is an empty line.
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise InvalidData("the PostgreSQL server sent a text that cannot be read", detail=str(error)) from None


def read_columns(texts: pa.Table, columns: Sequence[SourceColumn], table: str) -> pa.Table:
    """The named columns of a table of texts, as values of the lake. ``table`` is for messages."""
    return pa.Table.from_arrays(
        [column.read(texts.column(column.name), table) for column in columns], schema=schema(columns)
    )


def schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    """The columns as Arrow holds them in the lake."""
    return pa.schema([pa.field(column.name, column.mapped.arrow) for column in columns])
