"""Equality of rows as grouping sees it, for joins: NULL equals NULL, maps are equal whatever the order of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def same_rows(fields: Iterable[StructField], left: Mapping[str, Column], right: Mapping[str, Column]) -> Column:
    """Whether two rows agree in all the fields, with columns given by field name for each side."""
    agreed = [
        comparable(left[field.name], field.dataType).eqNullSafe(comparable(right[field.name], field.dataType))
        for field in fields
    ]
    return reduce(Column.__and__, agreed)


def comparable(value: Column, kind: DataType) -> Column:
    """The value in a form that Spark can compare: maps become sorted lists of their entries, also deep inside."""
    if not _holds_map(kind):
        return value
    match kind:
        case MapType():
            entries = F.transform(
                F.map_entries(value),
                lambda e: F.struct(
                    comparable(e["key"], kind.keyType).alias("key"),
                    comparable(e["value"], kind.valueType).alias("value"),
                ),
            )
            return F.array_sort(entries)
        case ArrayType():
            return F.transform(value, lambda e: comparable(e, kind.elementType))
        case StructType():
            inner = [comparable(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
            # A struct of NULLs is not a NULL struct.
            return F.when(value.isNotNull(), F.struct(*inner))
        case _:
            return value


def _holds_map(kind: DataType) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _holds_map(kind.elementType)
        case StructType():
            return any(_holds_map(f.dataType) for f in kind.fields)
        case _:
            return False
