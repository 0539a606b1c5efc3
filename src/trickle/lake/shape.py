"""Shapes of tables, compared and relaxed.

Whether Spark infers that a value is never NULL depends on the plan, not on the result. What a query gives is therefore
stored as nullable throughout, and compared so.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def relaxed(schema: StructType) -> StructType:
    """The same columns, nullable at every depth and without metadata."""
    return StructType([StructField(f.name, relaxed_type(f.dataType), True) for f in schema.fields])


def relaxed_type(kind: DataType) -> DataType:
    """The same type, nullable at every depth."""
    match kind:
        case StructType():
            return relaxed(kind)
        case ArrayType():
            return ArrayType(relaxed_type(kind.elementType), True)
        case MapType():
            return MapType(relaxed_type(kind.keyType), relaxed_type(kind.valueType), True)
        case _:
            return kind


def lost_columns(before: StructType, after: StructType) -> list[str]:
    """Columns that are missing afterwards, or of another type; order and case do not matter."""
    found = {f.name.lower(): relaxed_type(f.dataType) for f in after.fields}
    return [f.name for f in before.fields if found.get(f.name.lower()) != relaxed_type(f.dataType)]
