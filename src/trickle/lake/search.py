"""Rows to delete, looked up on the driver by all of their columns, where table and delta are small.

Equality is that of Spark's grouping: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DoubleType, FloatType, StructType

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.lake.datafile import DataFile
from trickle.lake.few import MOST_REWRITTEN, are_few, is_simple, read_few
from trickle.lake.paths import is_absolute
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot

MOST_WANTED = 20_000

_Key = tuple[object, ...]


def places_of(snapshot: Snapshot, files: Sequence[DataFile], wanted: pa.Table) -> pa.Table | None:
    """FILE and ROW of as many copies of the rows ``wanted`` (with WEIGHT below 0) as their weights say, if there are.

    None when there is too much to look through.
    """
    if wanted.num_rows > MOST_WANTED or not are_few(files, snapshot.schema, MOST_REWRITTEN):
        return None
    left: dict[_Key, int] = {}
    for key, weight in zip(_keys(wanted, snapshot.schema), wanted.column(WEIGHT).to_pylist(), strict=True):
        left[key] = left.get(key, 0) - weight
    found: list[tuple[str, int]] = []
    for file in files:
        rows, numbers = _alike(read_few(snapshot.location, file.path, snapshot.schema), wanted)
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


def _alike(rows: pa.Table, wanted: pa.Table) -> tuple[pa.Table, pa.Array]:
    """The rows that have a wanted value in every column that Arrow compares as Spark does, and their numbers."""
    numbers = pa.arange(0, rows.num_rows)
    for name in rows.column_names:
        if not rows.num_rows:
            break
        if not pa.types.is_floating(rows.column(name).type):
            values = pc.unique(wanted.column(name).cast(rows.column(name).type))
            mask = pc.is_in(rows.column(name), values)
            rows, numbers = rows.filter(mask), numbers.filter(mask.combine_chunks())
    return rows, numbers


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
