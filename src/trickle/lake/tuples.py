"""Rows that have some values in several columns together, among rows on the driver."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from trickle.lake.lookup import is_compared, type_of
from trickle.lake.scan import pick

_PLACE = "__place"


def matching(rows: pa.Table, schema: StructType, wanted: pa.Table) -> pa.Table:
    """The rows whose values in the columns of ``wanted`` are those of one of its rows; NULL equals nothing.

    All of them where values are not compared here as Spark does.
    """
    chosen = _matching(rows, schema, wanted)
    return rows if chosen is None or len(chosen) == rows.num_rows else rows.take(chosen)


def all_match(rows: pa.Table, schema: StructType, wanted: pa.Table) -> bool:
    """Whether every row is one of these; not known, and so False, where values are not compared here as Spark does."""
    keys = [type_of(key) for key in pick(schema, wanted.column_names).fields]
    # A value that a cast changes would be found where it is not.
    if not all(map(_is_as_wide, wanted.schema.types, keys)):
        return False
    chosen = _matching(rows, schema, wanted)
    return chosen is not None and len(chosen) == rows.num_rows


def _is_as_wide(kind: pa.DataType, key: pa.DataType) -> bool:
    return bool(kind == key or (pa.types.is_integer(kind) and pa.types.is_integer(key)))


def _matching(rows: pa.Table, schema: StructType, wanted: pa.Table) -> pa.ChunkedArray | None:
    """The numbers of the rows that match; None where that is not known."""
    keys = pick(schema, wanted.column_names)
    if not all(is_compared(kind, key) for kind, key in zip(wanted.schema.types, keys.fields, strict=True)):
        return None
    names = [f"k{place}" for place in range(len(keys.fields))]
    try:
        columns = [column.cast(type_of(key)) for column, key in zip(wanted.columns, keys.fields, strict=True)]
    except pa.ArrowInvalid:  # One of them lies outside of its column's type.
        return None
    unique = pa.table(columns, names=names).group_by(names).aggregate([])
    places = rows.select(keys.names).rename_columns(names).append_column(_PLACE, pa.arange(0, rows.num_rows))
    return places.join(unique, keys=names, join_type="left semi").column(_PLACE)
