"""Arrow types that Spark refuses are cast to those it reads."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from trickle.engine import Engine, parse_ddl
from trickle.errors import InvalidData

NOON = datetime(2024, 5, 1, 12)
UUID = b"0123456789abcdef"


def column(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"x": pa.array(values, kind)})


@pytest.mark.portable
@pytest.mark.parametrize(
    "table, spark_type, values",
    [
        (column(["a", None], pa.string_view()), "string", ["a", None]),
        (column(["a", None], pa.large_string()), "string", ["a", None]),
        (column([b"a", None], pa.binary_view()), "binary", [b"a", None]),
        (column([b"a", None], pa.large_binary()), "binary", [b"a", None]),
        (column([b"ab", None], pa.binary(2)), "binary", [b"ab", None]),
        (column([UUID, None], pa.uuid()), "binary", [UUID, None]),
        (column(["a", None], pa.dictionary(pa.int8(), pa.string())), "string", ["a", None]),
        (pa.table({"x": pa.RunEndEncodedArray.from_arrays([2], ["a"])}), "string", ["a", "a"]),
        (column([255, None], pa.uint8()), "smallint", [255, None]),
        (column([65535], pa.uint16()), "int", [65535]),
        (column([2**32 - 1], pa.uint32()), "bigint", [2**32 - 1]),
        (column([2**64 - 1], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1)]),
        (column([1.5], pa.float16()), "float", [1.5]),
        (column([date(1960, 1, 1)], pa.date64()), "date", [date(1960, 1, 1)]),
        (column([NOON], pa.timestamp("s")), "timestamp", [NOON]),
        (column([NOON], pa.timestamp("ms")), "timestamp", [NOON]),
        (column([1_714_564_800_000_000_999], pa.timestamp("ns")), "timestamp", [NOON]),
        (column([Decimal("1.10")], pa.decimal32(5, 2)), "decimal(5,2)", [Decimal("1.10")]),
        (column([Decimal("1.10")], pa.decimal256(5, 2)), "decimal(5,2)", [Decimal("1.10")]),
        (column([["a"], None], pa.large_list(pa.string_view())), "array<string>", [["a"], None]),
        (column([["a", "b"]], pa.list_(pa.large_string(), 2)), "array<string>", [["a", "b"]]),
        (
            column([[("k", NOON)]], pa.map_(pa.string_view(), pa.timestamp("ns"))),
            "map<string,timestamp>",
            [{"k": NOON}],
        ),
    ],
    ids=lambda value: str(value.schema.types[0]) if isinstance(value, pa.Table) else None,
)
def test_values_survive_the_cast(engine: Engine, table: pa.Table, spark_type: str, values: list[Any]) -> None:
    df = engine.from_arrow(table)
    assert df.schema["x"].dataType.simpleString() == spark_type
    assert [row.x for row in df.collect()] == values


@pytest.mark.portable
def test_structs_are_cast_inside(engine: Engine) -> None:
    kind = pa.struct([("name", pa.string_view()), ("n", pa.uint32())])
    df = engine.from_arrow(column([{"name": "ada", "n": 1}, None], kind))
    assert df.schema.simpleString() == "struct<x:struct<name:string,n:bigint>>"
    assert [row.x and row.x.asDict() for row in df.collect()] == [{"name": "ada", "n": 1}, None]


@pytest.mark.portable
def test_a_time_zone_only_changes_how_an_instant_is_spelled(engine: Engine) -> None:
    instants = pa.array([NOON], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Europe/Vienna"))
    df = engine.from_arrow(pa.table({"x": instants}))
    assert df.selectExpr("CAST(x AS STRING) AS x").collect()[0].x == "2024-05-01 12:00:00"


@pytest.mark.portable
def test_a_schema_arranges_and_casts_columns(engine: Engine) -> None:
    schema = parse_ddl(engine, "id BIGINT NOT NULL, name STRING, at TIMESTAMP_NTZ, price DECIMAL(5,2)")
    given = pa.table({"NAME": ["ada"], "at": [NOON], "price": [Decimal("1.5")], "id": pa.array([7], pa.int8())})
    df = engine.from_arrow(given, schema)
    assert df.schema == schema
    assert df.collect() == [(7, "ada", NOON, Decimal("1.50"))]


@pytest.mark.parametrize(
    "given, complaint",
    [
        ({"id": [1, None], "n": [1, 2]}, "column 'id' is NOT NULL"),
        ({"id": [1]}, "the columns do not fit the table"),
        ({"id": [1], "n": [1], "z": [1]}, "the columns do not fit the table"),
        ({"id": ["one"], "n": [1]}, "column 'id' cannot be stored as int64"),
        ({"id": [1], "n": [2**31]}, "column 'n' cannot be stored as int32"),
        ({"id": [1.5], "n": [1]}, "column 'id' cannot be stored as int64"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_column(engine: Engine, given: dict[str, Any], complaint: str) -> None:
    schema = parse_ddl(engine, "id BIGINT NOT NULL, n INT")
    with pytest.raises(InvalidData) as caught:
        engine.from_arrow(pa.table(given), schema)
    assert caught.value.message == complaint


def test_wide_decimals_are_taken_when_their_values_fit(engine: Engine) -> None:
    assert engine.from_arrow(column([Decimal(7)], pa.decimal256(76, 0))).collect() == [(Decimal(7),)]
    with pytest.raises(InvalidData, match="column 'x' cannot be stored as decimal128"):
        engine.from_arrow(column([Decimal(10**40)], pa.decimal256(76, 0)))


def test_a_type_without_an_equal_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidData, match="list_view"):
        engine.from_arrow(column([[1]], pa.list_view(pa.int64())))
