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
    keys = pick(schema, wanted.column_names)
    if not all(is_compared(kind, key) for kind, key in zip(wanted.schema.types, keys.fields, strict=True)):
        return rows
    names = [f"k{place}" for place in range(len(keys.fields))]
    try:
        columns = [column.cast(type_of(key)) for column, key in zip(wanted.columns, keys.fields, strict=True)]
    except pa.ArrowInvalid:  # One of them lies outside of its column's type.
        return rows
    unique = pa.table(columns, names=names).group_by(names).aggregate([])
    places = rows.select(keys.names).rename_columns(names).append_column(_PLACE, pa.arange(0, rows.num_rows))
    chosen = places.join(unique, keys=names, join_type="left semi").column(_PLACE)
    return rows if len(chosen) == rows.num_rows else rows.take(chosen)
