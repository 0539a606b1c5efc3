r"""Types of the lake in PostgreSQL, and how values are spelled for COPY.

| lake | PostgreSQL | note |
|---|---|---|
| boolean | boolean | |
| tinyint, smallint | smallint | |
| int, bigint | integer, bigint | |
| float, double | real, double precision | NaN and infinities as they are |
| decimal(p, s) | numeric(p, s) | |
| string, char, varchar | text | a NUL character is an error: PostgreSQL cannot hold it |
| binary | bytea | |
| date | date | years 1 to 9999 |
| timestamp | timestamp with time zone | the same |
| timestamp_ntz | timestamp without time zone | the same |
| struct, array, map, variant | jsonb | as Spark's ``to_json`` writes them, NULL fields included |

A table that was there before may have ``varchar`` in place of ``text`` and ``numeric`` without digits.

COPY's text format is the only one that every version reads alike: in its CSV a line with ``\.`` inside a value ended
the data before PostgreSQL 18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from trickle.algebra.names import visible
from trickle.errors import InvalidData, InvalidName, UnsupportedTable

_SYSTEM = {"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}
"""Names that PostgreSQL has for itself in every table."""
LONGEST = 63
"""Bytes of a name that PostgreSQL keeps."""
_EARLIEST = pa.scalar(datetime.min.replace(tzinfo=UTC), pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
_LATEST = pa.scalar(datetime.max.replace(tzinfo=UTC), pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))

_PLAIN: tuple[tuple[type[T.DataType], str], ...] = (
    (T.BooleanType, "boolean"),
    (T.ByteType, "smallint"),
    (T.ShortType, "smallint"),
    (T.IntegerType, "integer"),
    (T.LongType, "bigint"),
    (T.FloatType, "real"),
    (T.DoubleType, "double precision"),
    (T.StringType, "text"),
    (T.CharType, "text"),
    (T.VarcharType, "text"),
    (T.BinaryType, "bytea"),
    (T.DateType, "date"),
    (T.TimestampType, "timestamp with time zone"),
    (T.TimestampNTZType, "timestamp without time zone"),
)
JSON = "jsonb"
_NESTED = (T.StructType, T.ArrayType, T.MapType, T.VariantType)


@dataclass(frozen=True)
class Column:
    """A column of a published table; ``type`` as PostgreSQL itself writes it."""

    name: str
    type: str

    @property
    def is_nested(self) -> bool:
        """Whether Spark turns it into JSON first."""
        return self.type == JSON

    def takes(self, declared: str) -> bool:
        """Whether a column that was declared so holds every value unchanged, or refuses it."""
        if self.type == "text":
            return declared == "text" or declared.startswith("character varying")
        return declared == self.type or (self.type.startswith("numeric") and declared == "numeric")


def columns_of(schema: T.StructType, table: str) -> list[Column]:
    """The columns that readers see, with their types in PostgreSQL; refuses what it cannot hold."""
    wanted = set(visible(schema.names))
    return [Column(_name(f.name, table), _type(f, table)) for f in schema.fields if f.name in wanted]


def _name(name: str, table: str) -> str:
    if len(name.encode()) > LONGEST or name in _SYSTEM:
        why = "PostgreSQL has it for itself" if name in _SYSTEM else f"PostgreSQL keeps {LONGEST} bytes of a name"
        raise InvalidName(
            f"column {name!r} of {table} cannot be published",
            detail=why,
            hint="give it another name in the query of the stream table",
        )
    return name


def _type(field: T.StructField, table: str) -> str:
    kind = field.dataType
    if isinstance(kind, T.DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    if isinstance(kind, _NESTED):
        return JSON
    for known, name in _PLAIN:
        if isinstance(kind, known):
            return name
    raise UnsupportedTable(
        f"column {field.name!r} of {table} cannot be published",
        detail=f"PostgreSQL has no type for {kind.simpleString()}",
        hint="cast it in the query of the stream table",
    )


def copy_lines(rows: pa.Table, columns: Sequence[Column], beside: Sequence[str], table: str) -> bytes:
    """Rows as COPY's text format has them: the columns, and whole numbers ``beside`` them."""
    if not rows.num_rows:
        return b""
    spelled = [_spelled(rows.column(column.name), column, table) for column in columns]
    spelled += [pc.cast(rows.column(name), pa.string()) for name in beside]
    lines = pc.binary_join_element_wise(*(pc.fill_null(texts, r"\N") for texts in spelled), "\t")
    return ("\n".join(lines.to_pylist()) + "\n").encode()


def _spelled(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    return _SPELLINGS.get(column.type, _cast)(values, column, table)


def _cast(values: pa.ChunkedArray, _column: Column, _table: str) -> pa.ChunkedArray:
    return pc.cast(values, pa.string())


def _text(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    texts = pc.cast(values, pa.string())
    if pc.any(pc.match_substring(texts, "\0")).as_py():
        raise _unholdable(column, table, "a text holds the character NUL")
    return _escaped(texts)


def _json(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    texts = pc.cast(values, pa.string())
    # The escape of NUL, after an even number of backslashes.
    if pc.any(pc.match_substring_regex(texts, r"(^|[^\\])(\\\\)*\\u0000")).as_py():
        raise _unholdable(column, table, "a text inside of it holds the character NUL")
    return _escaped(texts)


def _escaped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    for plain, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        texts = pc.replace_substring(texts, plain, escape)
    return texts


def _bytes(values: pa.ChunkedArray, _column: Column, _table: str) -> pa.ChunkedArray:
    return pa.chunked_array([[None if v is None else rf"\\x{v.hex()}" for v in values.to_pylist()]], pa.string())


def _days(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    _within(values, pa.scalar(date.min, values.type), pa.scalar(date.max, values.type), column, table)
    return pc.cast(values, pa.string())


def _moments(values: pa.ChunkedArray, column: Column, table: str) -> pa.ChunkedArray:
    # In UTC, as the session reads them.
    plain = pc.cast(values, pa.timestamp("us"))
    _within(plain, _EARLIEST, _LATEST, column, table)
    return pc.cast(plain, pa.string())


def _within(values: pa.ChunkedArray, low: pa.Scalar, high: pa.Scalar, column: Column, table: str) -> None:
    outside = pc.or_(pc.less(values, low), pc.greater(values, high))
    if pc.any(outside).as_py():
        raise _unholdable(column, table, "it is outside of the years 1 to 9999")


def _unholdable(column: Column, table: str, detail: str) -> InvalidData:
    return InvalidData(
        f"column {column.name!r} of {table} holds a value that cannot be published",
        detail=detail,
        hint="change the value at the source, or the query of the stream table",
    )


_SPELLINGS: dict[str, Callable[[pa.ChunkedArray, Column, str], pa.ChunkedArray]] = {
    "text": _text,
    JSON: _json,
    "bytea": _bytes,
    "date": _days,
    "timestamp with time zone": _moments,
    "timestamp without time zone": _moments,
}
