"""Which schemas a Delta table can hold, and the same schema as Spark, Delta and Arrow know it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from deltalake import Schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from trickle.errors import InvalidName, InvalidOption, UnknownColumn, UnsupportedTable

_ATOMIC = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)
# A partition value is text in the log: binary, floating point and nested values have no exact text there.
_PARTITION = (
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_NOT_IN_NAMES = set(" ,;{}()\n\t=")


def check_storable(schema: StructType) -> None:
    """Refuse, by column and type, what a Delta table cannot hold."""
    if not schema.fields:
        raise InvalidOption("a table needs at least one column")
    _check_fields(schema, ())


def _check_fields(struct: StructType, above: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for field in struct.fields:
        path = (*above, field.name)
        bad = sorted(_NOT_IN_NAMES.intersection(field.name))
        if bad or not field.name:
            raise InvalidName(
                f"column name {'.'.join(path)!r} cannot be stored",
                detail=f"it holds {bad[0]!r}" if bad else "it is empty",
                hint="Delta tables do not allow space , ; { } ( ) = tab or newline in column names: add an alias",
            )
        if field.name.lower() in seen:
            raise InvalidName(f"column {'.'.join(path)!r} is there twice", hint="give one of them an alias")
        seen.add(field.name.lower())
        _check_type(field.dataType, path)


def _check_type(kind: DataType, path: tuple[str, ...]) -> None:
    match kind:
        case StructType():
            _check_fields(kind, path)
        case ArrayType():
            _check_type(kind.elementType, (*path, "element"))
        case MapType():
            _check_type(kind.keyType, (*path, "key"))
            _check_type(kind.valueType, (*path, "value"))
        case StringType():
            if kind != StringType():
                raise UnsupportedTable(
                    f"column {'.'.join(path)!r} has a collation",
                    detail=f"a Delta table cannot hold the type {kind.simpleString()}",
                    hint="cast it to STRING",
                )
        case CharType() | VarcharType():
            pass
        case _ if not isinstance(kind, _ATOMIC):
            raise UnsupportedTable(
                f"column {'.'.join(path)!r} cannot be stored",
                detail=f"a Delta table cannot hold the type {kind.simpleString()}",
                hint="cast it to a type that Delta holds, for example STRING",
            )


def check_partition(schema: StructType, partition_by: Iterable[str]) -> tuple[str, ...]:
    """The partition columns as the schema spells them; refuses unknown, repeated and unsuitable ones."""
    columns = {field.name.lower(): field for field in schema.fields}
    found: list[str] = []
    for name in partition_by:
        field = columns.get(name.lower())
        if field is None:
            raise UnknownColumn(f"no column {name!r} to partition by", hint="columns: " + ", ".join(schema.names))
        if field.name in found:
            raise InvalidOption(f"column {field.name!r} is given twice in PARTITIONED BY")
        if not isinstance(field.dataType, (*_PARTITION, CharType, VarcharType)):
            raise InvalidOption(
                f"column {field.name!r} cannot be a partition column",
                detail=f"its type is {field.dataType.simpleString()}",
                hint="partition by whole numbers, decimals, text, dates, timestamps or booleans",
            )
        found.append(field.name)
    if len(found) == len(schema.fields):
        raise InvalidOption("all columns are partition columns", hint="leave at least one column for the files")
    return tuple(found)


def storable(schema: StructType) -> StructType:
    """The schema as it is stored: CHAR and VARCHAR become STRING, and only whole columns can be NOT NULL.

    Of the metadata, comments stay; the rest is Spark's own affair.
    """
    check_storable(schema)
    return StructType([StructField(f.name, _stored(f.dataType), f.nullable, _comment(f)) for f in schema.fields])


def _comment(field: StructField) -> dict[str, str] | None:
    return {"comment": field.metadata["comment"]} if "comment" in field.metadata else None


def _stored(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return StructType([StructField(f.name, _stored(f.dataType)) for f in kind.fields])
        case ArrayType():
            return ArrayType(_stored(kind.elementType))
        case MapType():
            return MapType(_stored(kind.keyType), _stored(kind.valueType))
        case CharType() | VarcharType():
            return StringType()
        case _:
            return kind


def has_timestamp_ntz(kind: DataType) -> bool:
    """Whether a TIMESTAMP_NTZ is anywhere in the type; such a table needs the protocol feature of that name."""
    match kind:
        case StructType():
            return any(has_timestamp_ntz(f.dataType) for f in kind.fields)
        case ArrayType():
            return has_timestamp_ntz(kind.elementType)
        case MapType():
            return has_timestamp_ntz(kind.keyType) or has_timestamp_ntz(kind.valueType)
        case _:
            return isinstance(kind, TimestampNTZType)


def delta_schema(schema: StructType) -> Schema:
    """The schema for delta-rs."""
    return Schema.from_json(schema.json())


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema for Arrow: micros, UTC for TIMESTAMP."""
    return pa.schema(delta_schema(schema).to_arrow())
