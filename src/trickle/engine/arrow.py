"""Arrow tables on their way into Spark.

Spark reads only a part of Arrow's types. The others have an equal among those, or a wider one, and are cast first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from trickle.engine.failures import spark_errors
from trickle.errors import InvalidData

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


_DIGITS = 38
"""The most digits of a decimal in Spark and Delta."""


def spark_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark reads in place of an Arrow type.

    >>> str(spark_type(pa.list_(pa.large_string()))), str(spark_type(pa.timestamp("ns")))
    ('list<element: string>', 'timestamp[us]')
    """
    types = pa.types
    if kind in _WIDER:
        return _WIDER[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return spark_type(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return spark_type(kind.value_type)
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_decimal(kind):
        return pa.decimal128(min(kind.precision, _DIGITS), min(kind.scale, _DIGITS))
    if _is_list(kind):
        return pa.list_(pa.field("element", spark_type(kind.value_type), kind.value_field.nullable))
    if types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), _as_field(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_as_field(f) for f in kind])
    return kind


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _as_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, spark_type(field.type), field.nullable)


def is_handed(schema: StructType) -> bool:
    """Whether Spark hands over all columns: Arrow has no type for some, as for intervals of months."""
    try:
        for field in schema.fields:
            to_arrow_type(field.dataType, timezone="UTC")
    except PySparkTypeError:
        return False
    return True


def for_spark(table: pa.Table, schema: StructType | None = None) -> pa.Table:
    """The table with types that Spark reads: those of ``schema``, or the nearest to its own."""
    if schema is None:
        fields = [_as_field(f) for f in table.schema]
        columns: Sequence[pa.ChunkedArray] = table.columns
    else:
        columns = _arrange(table, schema)
        _check_nulls(columns, schema)
        with spark_errors():
            fields = [pa.field(f.name, to_arrow_type(f.dataType, timezone="UTC"), f.nullable) for f in schema]
    cast = [_cast(column, field) for column, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(cast, schema=pa.schema(fields))


def _arrange(table: pa.Table, schema: StructType) -> list[pa.ChunkedArray]:
    """The table's columns in the order of the schema, found without regard to case."""
    given = {name.lower(): i for i, name in enumerate(table.column_names)}
    wanted = {name.lower(): name for name in schema.names}
    missing = [name for key, name in wanted.items() if key not in given]
    unknown = [name for name in table.column_names if name.lower() not in wanted]
    if missing or unknown or len(given) < len(table.column_names):
        raise InvalidData(
            "the columns do not fit the table",
            detail=f"given: {', '.join(table.column_names)}",
            hint=f"the table has: {', '.join(schema.names)}",
        )
    return [table.column(given[key]) for key in wanted]


def _check_nulls(columns: Sequence[pa.ChunkedArray], schema: StructType) -> None:
    for column, field in zip(columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise InvalidData(
                f"column {field.name!r} is NOT NULL", detail=f"{column.null_count} of {len(column)} values are NULL"
            )


def _decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Columns of the two kinds that Arrow itself does not cast."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    column = _decode(column)
    if column.type == field.type:
        return column
    # Spark and Delta keep microseconds: what is finer is cut off. Everything else must fit exactly.
    options = pc.CastOptions(field.type, allow_time_truncate=True)
    try:
        return pc.cast(column, options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidData(
            f"column {field.name!r} cannot be stored as {field.type}",
            detail=f"it is {column.type}: {str(error).splitlines()[0]}",
        ) from None
