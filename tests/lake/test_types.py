"""What a Delta table can hold."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from trickle.errors import InvalidName, InvalidOption, UnknownColumn, UnsupportedTable
from trickle.lake.shape import relaxed
from trickle.lake.types import (
    arrow_schema,
    check_partition,
    check_storable,
    delta_schema,
    has_timestamp_ntz,
    storable,
)


def one(kind: DataType, name: str = "a") -> StructType:
    return StructType([StructField(name, kind)])


@pytest.mark.parametrize(
    "kind",
    [
        NullType(),
        CalendarIntervalType(),
        DayTimeIntervalType(),
        YearMonthIntervalType(),
        TimeType(),
        VariantType(),
        StringType("UNICODE_CI"),
    ],
)
def test_a_type_that_delta_does_not_know_is_refused_by_column_and_type(kind: DataType) -> None:
    with pytest.raises(UnsupportedTable, match=r"'a\.element'") as refused:
        check_storable(one(ArrayType(kind)))
    assert refused.value.detail is not None
    assert kind.simpleString() in refused.value.detail


def test_names_that_delta_cannot_store_are_refused_at_any_depth() -> None:
    with pytest.raises(InvalidName, match=r"'s\.a b'"):
        check_storable(one(one(LongType(), "a b"), "s"))
    with pytest.raises(InvalidName, match="twice"):
        check_storable(StructType([StructField("a", LongType()), StructField("A", LongType())]))
    with pytest.raises(InvalidOption):
        check_storable(StructType([]))


def test_text_of_limited_length_is_stored_as_text_and_only_columns_are_not_null() -> None:
    given = StructType(
        [
            StructField("c", CharType(3), False),
            StructField("l", ArrayType(VarcharType(9), containsNull=False)),
            StructField("s", StructType([StructField("x", LongType(), False)]), False, {"comment": "why", "other": 1}),
        ]
    )
    assert storable(given) == StructType(
        [
            StructField("c", StringType(), False),
            StructField("l", ArrayType(StringType())),
            StructField("s", StructType([StructField("x", LongType())]), False, {"comment": "why"}),
        ]
    )
    assert all(field.nullable for field in relaxed(given).fields)


def test_partition_columns_are_checked_and_spelled_as_the_schema_does() -> None:
    schema = StructType(
        [StructField("Day", DateType()), StructField("x", DoubleType()), StructField("b", BinaryType())]
    )
    assert check_partition(schema, ["day"]) == ("Day",)
    with pytest.raises(UnknownColumn, match="'month'"):
        check_partition(schema, ["month"])
    with pytest.raises(InvalidOption, match="twice"):
        check_partition(schema, ["day", "DAY"])
    for unsuitable in ("x", "b"):
        with pytest.raises(InvalidOption, match="cannot be a partition column"):
            check_partition(schema, [unsuitable])
    with pytest.raises(InvalidOption, match="all columns"):
        check_partition(one(DateType()), ["a"])


def test_the_schema_is_the_same_for_spark_delta_and_arrow() -> None:
    schema = StructType(
        [
            StructField("d", DecimalType(38, 18), False),
            StructField("m", MapType(StringType(), ArrayType(IntegerType()))),
            StructField("t", TimestampType()),
            StructField("n", TimestampNTZType()),
        ]
    )
    assert StructType.fromJson(json.loads(delta_schema(schema).to_json())) == schema
    arrow = arrow_schema(schema)
    assert arrow.field("d").type == pa.decimal128(38, 18)
    assert not arrow.field("d").nullable
    assert (arrow.field("t").type, arrow.field("n").type) == (pa.timestamp("us", "UTC"), pa.timestamp("us"))


def test_a_timestamp_without_zone_is_found_at_any_depth() -> None:
    assert has_timestamp_ntz(one(MapType(StringType(), ArrayType(one(TimestampNTZType())))))
    assert not has_timestamp_ntz(one(MapType(StringType(), TimestampType())))
