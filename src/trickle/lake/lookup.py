"""Rows of a table with some key values, looked up on the driver.

Arrow looks through some million rows before Spark has planned, compiled and begun a scan of them. So where some
thousand rows of a table are wanted, they are read here: the key column of every file that may have them, and the other
columns only of files that do. What is found travels with the plan.

Only what needs no help from the log is read here, and only types that are the same to Spark, Arrow and Parquet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DateType, DecimalType, IntegralType, StringType, StructField, StructType

from trickle.algebra.weights import FILE, ROW
from trickle.engine.arrow import for_spark
from trickle.lake.datafile import DataFile
from trickle.lake.few import are_plain, opened, read_columns, with_places
from trickle.lake.location import Location

MOST_READ = 20_000_000
"""Rows of files that are looked through."""
MOST_FOUND = 100_000
MOST_BYTES = 32 << 20
"""Rows that are found, and their size; more are left to Spark, which would be handed them with the plan."""


@dataclass(frozen=True)
class Wanted:
    """Values of a key column. NULL is one of them only where it equals itself."""

    values: pa.Array
    token: str
    """The same for the same values."""

    @staticmethod
    def of(keys: pa.ChunkedArray, key: StructField, *, nulls: bool) -> Wanted | None:
        """What to look for in a column; None when its type or theirs is not compared here as Spark does."""
        if not _is_compared(keys.type, key):
            return None
        unique = pc.unique(keys)
        unique = unique if nulls else pc.drop_null(unique)
        try:
            values = unique.cast(_type_of(key))
        except pa.ArrowInvalid:  # One of them lies outside of the column's type.
            return None
        ordered = values.take(pc.sort_indices(values))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("key", ordered.type)])) as stream:
            stream.write_batch(pa.record_batch([ordered], names=["key"]))
        return Wanted(ordered, hashlib.sha256(sink.getvalue()).hexdigest())


def _type_of(key: StructField) -> pa.DataType:
    """The Arrow type in which a column is read."""
    return _nothing(StructType([StructField(key.name, key.dataType)])).schema[0].type


def _is_compared(kind: pa.DataType, key: StructField) -> bool:
    match key.dataType:
        case IntegralType():
            return bool(pa.types.is_integer(kind))
        case DateType():
            return bool(pa.types.is_date(kind))
        case DecimalType():
            return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))
        case StringType():
            return bool(pa.types.is_string(kind)) and key.dataType == StringType()
        case _:
            return False


def can_look_up(files: Sequence[DataFile], schema: StructType) -> bool:
    """Whether files can be looked through here, and are few enough for it."""
    return are_plain(files, schema, MOST_READ)


@dataclass
class Lookups:
    """Lookups of one refresh. Old and new version of a table share most files: each is looked through once."""

    files: int = 0
    rows: int = 0
    _found: dict[tuple[str, str, str, tuple[str, ...], str], pa.Table] = field(default_factory=dict)

    def find(
        self,
        location: Location,
        files: Sequence[DataFile],
        schema: StructType,
        key: StructField,
        wanted: Wanted,
        *,
        located: bool = False,
    ) -> tuple[pa.Table, StructType] | None:
        """The rows whose key is wanted, with FILE and ROW when ``located``; None when they are too many."""
        parts: list[pa.Table] = []
        count = size = 0
        for file in files:
            rows = self._of_file(location, file, schema, key, wanted)
            rows = rows if located else rows.drop_columns([FILE, ROW])
            count, size = count + rows.num_rows, size + rows.nbytes
            if count > MOST_FOUND or size > MOST_BYTES:
                return None
            parts.append(rows)
        shape = with_places(schema)
        shape = shape if located else StructType(shape.fields[:-2])
        return (pa.concat_tables(parts) if parts else _nothing(shape)), shape

    def _of_file(
        self, location: Location, file: DataFile, schema: StructType, key: StructField, wanted: Wanted
    ) -> pa.Table:
        place = (location.uri, file.path, key.name, tuple(schema.names), wanted.token)
        if place not in self._found:
            self.files += 1
            self.rows += file.rows or 0
            self._found[place] = _matching(location, file.path, schema, key, wanted)
        return self._found[place]


def _matching(location: Location, path: str, schema: StructType, key: StructField, wanted: Wanted) -> pa.Table:
    """The rows of a file whose key is wanted, with their places."""
    with opened(location, path) as file:
        keys = read_columns(file, StructType([StructField(key.name, key.dataType)])).column(0)
        numbers = pc.indices_nonzero(pc.is_in(keys, wanted.values)).cast(pa.int64())
        if not len(numbers):
            return _nothing(with_places(schema))
        rows = read_columns(file, schema).take(numbers)
    rows = rows.append_column(FILE, pa.repeat(pa.scalar(path, pa.string()), rows.num_rows))
    return rows.append_column(ROW, pa.chunked_array([numbers]))


def _nothing(schema: StructType) -> pa.Table:
    return for_spark(pa.table({name: [] for name in schema.names}), schema)
