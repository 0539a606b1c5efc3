"""Rows to delete, looked up on the driver by all of their columns, one file at a time for each of its threads.

Equality is that of Spark's grouping: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DoubleType, FloatType, StructType

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.lake.datafile import DataFile
from trickle.lake.few import THREADS, are_many, are_written_anew, is_simple, opened, read_columns, read_few
from trickle.lake.paths import is_absolute
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot
from trickle.lake.types import arrow_schema

MOST_WANTED = 20_000
MOST_SEARCHED = 20_000_000
"""Rows of files that are looked through, column by column."""
MOST_ALIKE = 500_000
"""Rows that have a wanted value in every column, to be compared one by one."""

_Key = tuple[object, ...]


def places_of(snapshot: Snapshot, files: Sequence[DataFile], wanted: pa.Table) -> pa.Table | None:
    """FILE and ROW of as many copies of the rows ``wanted`` (with WEIGHT below 0) as their weights say, if there are.

    None when there is too much to look through.
    """
    schema = snapshot.schema
    if wanted.num_rows > MOST_WANTED or are_many(files, MOST_SEARCHED) or not are_written_anew(files, schema):
        return None
    values = _values(wanted, schema)
    left: dict[_Key, int] = {}
    for key, weight in zip(_keys(wanted, schema), wanted.column(WEIGHT).to_pylist(), strict=True):
        left[key] = left.get(key, 0) - weight
    missing, alike = sum(left.values()), 0
    found: list[tuple[str, int]] = []
    with ThreadPoolExecutor(THREADS) as pool:
        # Some at a time: what is alike is held until it is compared.
        for start in range(0, len(files), THREADS):
            some = files[start : start + THREADS] if missing else ()
            hits = list(pool.map(partial(_alike, snapshot, values), some))
            alike += sum(MOST_ALIKE + 1 if hit is None else hit[0].num_rows for hit in hits)
            if alike > MOST_ALIKE:
                return None
            for file, (rows, numbers) in zip(some, filter(None, hits), strict=True):
                for key, row in zip(_keys(rows, schema), numbers.to_pylist(), strict=True):
                    if left.get(key, 0) > 0:
                        left[key] -= 1
                        missing -= 1
                        found.append((file.path, row))
    return pa.table(
        {FILE: pa.array([file for file, _ in found], pa.string()), ROW: pa.array([row for _, row in found], pa.int64())}
    )


def places_by_key(
    snapshot: Snapshot, files: Sequence[DataFile], wanted: pa.Table, key: Sequence[str]
) -> pa.Table | None:
    """FILE and ROW of the rows with the keys ``wanted``, one for each where the key is one; of files only the key is
    read, so that it does not matter how wide or how long they are. None where Arrow does not compare as Spark does.
    """
    columns = pick(snapshot.schema, key)
    plain = all(is_simple(f.dataType) and not isinstance(f.dataType, DoubleType | FloatType) for f in columns.fields)
    if not plain or any(f.partition or f.deletion_vector is not None or is_absolute(f.path) for f in files):
        return None
    found = []
    keys = wanted.select(columns.names)
    for file in files:
        rows = read_few(snapshot.location, file.path, columns)
        numbered = rows.append_column(ROW, pa.arange(0, rows.num_rows))
        if len(columns.fields) == 1:
            name = columns.names[0]
            values = keys.column(name).cast(rows.column(name).type).combine_chunks()
            hit = numbered.filter(pc.is_in(rows.column(name), value_set=values))
        else:
            hit = numbered.join(keys.cast(rows.schema), columns.names, join_type="inner")
        numbers = hit.column(ROW)
        found.append(pa.table({FILE: pa.array([file.path] * len(numbers), pa.string()), ROW: numbers}))
    empty = pa.table({FILE: pa.array([], pa.string()), ROW: pa.array([], pa.int64())})
    return pa.concat_tables([empty, *found])


def _values(wanted: pa.Table, schema: StructType) -> list[pa.Array | None]:
    """The wanted values of each column; None where Arrow does not compare them as Spark does."""
    columns = [wanted.column(name) for name in schema.names]
    return [None if pa.types.is_floating(column.type) else pc.unique(column) for column in columns]


def _alike(snapshot: Snapshot, values: Sequence[pa.Array | None], file: DataFile) -> tuple[pa.Table, pa.Array] | None:
    """The rows of a file that have a wanted value in every column that is compared, and their numbers; None when they
    are too many. A column is read for what the ones before it left, those that are not compared at last.
    """
    fields = snapshot.schema.fields
    with opened(snapshot.location, file.path) as source:
        numbers = everything = pa.arange(0, source.metadata.num_rows)
        columns: dict[str, pa.ChunkedArray] = {}
        for field, wanted in sorted(zip(fields, values, strict=True), key=lambda pair: pair[1] is None):
            if not len(numbers):
                columns = dict(
                    zip(snapshot.schema.names, arrow_schema(snapshot.schema).empty_table().columns, strict=True)
                )
                break
            if wanted is None and len(numbers) > MOST_ALIKE:
                return None
            column = read_columns(source, StructType([field])).column(0)
            if len(numbers) < len(everything):
                # Not taken by number: that would put all of a long column into one array.
                column = column.filter(pc.is_in(everything, numbers))
            if wanted is not None:
                kept = pc.is_in(column, wanted.cast(column.type)).combine_chunks()
                columns = {name: one.filter(kept) for name, one in columns.items()}
                column, numbers = column.filter(kept), numbers.filter(kept)
            columns[field.name] = column
    return pa.table([columns[name] for name in snapshot.schema.names], names=snapshot.schema.names), numbers


def _keys(rows: pa.Table, schema: StructType) -> list[_Key]:
    columns = [[_comparable(value) for value in _plain(rows.column(name)).to_pylist()] for name in schema.names]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Days and moments as numbers: Python has no year after 9999. Texts as bytes: they may be no texts to Python."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _comparable(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
