"""Rows to delete, looked up on the driver by all of their columns, where table and delta are small.

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
from trickle.lake.few import THREADS, are_many, are_plain, is_simple, opened, read_columns, read_few
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
    if wanted.num_rows > MOST_WANTED or not are_plain(files, snapshot.schema) or are_many(files, MOST_SEARCHED):
        return None
    values = _values(wanted, snapshot.schema)
    left: dict[_Key, int] = {}
    for key, weight in zip(_keys(wanted, snapshot.schema), wanted.column(WEIGHT).to_pylist(), strict=True):
        left[key] = left.get(key, 0) - weight
    found: list[tuple[str, int]] = []
    with ThreadPoolExecutor(THREADS) as pool:
        hits = list(pool.map(partial(_alike, snapshot, values), files))
    if sum(rows.num_rows for rows, _ in hits) > MOST_ALIKE:
        return None
    for file, (rows, numbers) in zip(files, hits, strict=True):
        for key, row in zip(_keys(rows, snapshot.schema), numbers.to_pylist(), strict=True):
            if left.get(key, 0) > 0:
                left[key] -= 1
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


def _alike(snapshot: Snapshot, values: Sequence[pa.Array | None], file: DataFile) -> tuple[pa.Table, pa.Array]:
    """The rows of a file that have a wanted value in every column that is compared, and their numbers.

    A column is read for what the ones before it left; none when nothing is left.
    """
    with opened(snapshot.location, file.path) as source:
        numbers = pa.arange(0, source.metadata.num_rows)
        columns: list[pa.ChunkedArray] = []
        for field, wanted in zip(snapshot.schema.fields, values, strict=True):
            if not len(numbers):
                break
            column = read_columns(source, StructType([field])).column(0).take(numbers)
            columns.append(column)
            if wanted is not None:
                kept = pc.is_in(column, wanted.cast(column.type)).combine_chunks()
                columns, numbers = [one.filter(kept) for one in columns], numbers.filter(kept)
    if len(columns) < len(snapshot.schema.fields) or not len(numbers):
        columns = [pa.chunked_array([], kind) for kind in arrow_schema(snapshot.schema).types]
    return pa.table(columns, names=snapshot.schema.names), numbers


def _keys(rows: pa.Table, schema: StructType) -> list[_Key]:
    columns = [[_comparable(value) for value in _plain(rows.column(name)).to_pylist()] for name in schema.names]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Days and moments as numbers: Python has no year after 9999."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _comparable(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
