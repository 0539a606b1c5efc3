"""Rows brought to a table's schema by column name, with the casts of Spark's ANSI store assignment and no others."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from trickle.algebra.names import nearest, quote
from trickle.errors import InvalidData


def conform(df: DataFrame, schema: StructType, beside: Sequence[str] = ()) -> DataFrame:
    """The rows with exactly the columns of the schema, in its order and types, and those ``beside`` it unchanged."""
    given: dict[str, str] = {}
    for name in df.columns:
        if name in beside:
            continue
        if name.lower() in given:
            raise InvalidData(f"column {name!r} is there twice", hint="give one of them an alias")
        given[name.lower()] = name
    wanted = {field.name.lower() for field in schema.fields}
    unknown = [name for key, name in given.items() if key not in wanted]
    if unknown:
        close = nearest(unknown[0], schema.names)
        raise InvalidData(
            f"the table has no column {unknown[0]!r}",
            hint=f"did you mean {close!r}?" if close else "columns: " + ", ".join(schema.names),
        )
    missing = [field.name for field in schema.fields if field.name.lower() not in given]
    if missing:
        raise InvalidData(f"the rows have no column {missing[0]!r}", detail="the rows have: " + ", ".join(df.columns))
    types = {field.name: field.dataType for field in df.schema.fields}
    if df.columns == [*schema.names, *beside] and all(_same(types[f.name], f.dataType) for f in schema.fields):
        # Every column object is a call into the JVM.
        return df
    columns = [
        _assigned(given[field.name.lower()], types[given[field.name.lower()]], field.name, field.dataType)
        for field in schema.fields
    ]
    return df.select(*columns, *(F.col(quote(name)) for name in beside))


def _assigned(source: str, have: DataType, name: str, want: DataType) -> Column:
    column = F.col(quote(source))
    if _same(have, want):
        return column.alias(name)
    if not assignable(have, want):
        raise InvalidData(
            f"column {name!r} takes {want.simpleString()}, not {have.simpleString()}",
            hint=f"write CAST({quote(source)} AS {want.simpleString().upper()}) where that is meant",
        )
    return column.cast(want).alias(name)


def _same(have: DataType, want: DataType) -> bool:
    """Equal but for NOT NULL inside and the metadata of fields."""
    if isinstance(have, NullType) or isinstance(want, NullType):
        return False
    return _bare(have) == _bare(want)


def _bare(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return StructType([StructField(f.name, _bare(f.dataType)) for f in kind.fields])
        case ArrayType():
            return ArrayType(_bare(kind.elementType))
        case MapType():
            return MapType(_bare(kind.keyType), _bare(kind.valueType))
        case _:
            return kind


def assignable(have: DataType, want: DataType) -> bool:
    """Whether a value may be stored in a column of another type; what does not fit then fails when it runs."""
    match have, want:
        case NullType(), _:
            return True
        case NumericType(), NumericType():
            return True
        case StructType(), StructType():
            return len(have.fields) == len(want.fields) and all(
                a.name.lower() == b.name.lower() and assignable(a.dataType, b.dataType)
                for a, b in zip(have.fields, want.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return assignable(have.elementType, want.elementType)
        case MapType(), MapType():
            return assignable(have.keyType, want.keyType) and assignable(have.valueType, want.valueType)
        case ((DateType() | TimestampType() | TimestampNTZType()), (DateType() | TimestampType() | TimestampNTZType())):
            return True
        case BinaryType(), StringType():
            return False
        case AtomicType(), StringType():
            return True
        case _:
            return _same(have, want)
