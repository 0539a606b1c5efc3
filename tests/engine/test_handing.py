"""Rows to Spark and back: as PySpark would have handed them over."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from trickle.engine import Engine
from trickle.engine.arrow import for_spark
from trickle.engine.handing import Handing
from trickle.errors import TrickleError

SHAPE = StructType(
    [
        StructField("id", LongType(), nullable=False),
        StructField("number", IntegerType()),
        StructField("price", DecimalType(12, 2)),
        StructField("ratio", DoubleType()),
        StructField("name", StringType()),
        StructField("raw", BinaryType()),
        StructField("good", BooleanType()),
        StructField("day", DateType()),
        StructField("at", TimestampType()),
        StructField("there", TimestampNTZType()),
        StructField("tags", ArrayType(StringType())),
        StructField("parts", ArrayType(StructType([StructField("a", IntegerType()), StructField("b", StringType())]))),
        StructField("by_name", MapType(StringType(), IntegerType())),
    ]
)


def rows(count: int) -> pa.Table:
    def one(n: int) -> dict[str, object]:
        if n % 3 == 2:
            return {field.name: n if field.name == "id" else None for field in SHAPE.fields}
        return {
            "id": n,
            "number": -n,
            "price": Decimal(n).scaleb(-2),
            "ratio": float("nan") if n % 5 == 0 else n / 7,
            "name": f"é{n}" if n else "",
            "raw": bytes([n % 256]),
            "good": n % 2 == 0,
            "day": date(2024, 2, 29),
            "at": datetime(2024, 3, 31, 2, 30, n % 60, 7, UTC),
            "there": datetime(1900, 1, 1, 0, 0, n % 60),
            "tags": ["a", None] if n % 2 else [],
            "parts": [{"a": n, "b": None}],
            "by_name": [("k", n)],
        }

    shape = for_spark(pa.table({name: [] for name in SHAPE.names}), SHAPE).schema
    return pa.Table.from_pylist([one(n) for n in range(count)], shape)


@pytest.mark.portable
@pytest.mark.parametrize("count", [0, 1, 25_000])
def test_rows_are_those_that_pyspark_hands_over(engine: Engine, count: int) -> None:
    given = rows(count)
    frame = engine.from_arrow(given, SHAPE)
    expected = engine.spark.createDataFrame(given, SHAPE)
    assert frame.schema == expected.schema
    found, wanted = engine.collect(frame).sort_by("id"), expected.toArrow().sort_by("id")
    assert found.schema == wanted.schema
    assert found.num_rows == count
    # NaN is not equal to itself.
    assert found.drop_columns(["ratio"]).equals(wanted.drop_columns(["ratio"]))
    assert list(map(str, found.column("ratio").to_pylist())) == list(map(str, wanted.column("ratio").to_pylist()))


@pytest.mark.portable
def test_a_query_that_fails_says_so(engine: Engine) -> None:
    with pytest.raises(TrickleError, match=r"(?i)divi"):
        engine.collect(engine.sql("SELECT 1 / (id - id) FROM range(3)"))


def test_rows_go_the_long_way_where_files_are_encrypted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.spark.sparkContext, "_encryption_enabled", True)
    assert not Handing(engine.spark).is_open
    monkeypatch.setattr(engine, "_handing", Handing(engine.spark))
    with monkeypatch.context() as patch:
        patch.setattr(engine.spark.sparkContext, "_encryption_enabled", False)
        patch.setattr(Handing, "give", None)
        patch.setattr(Handing, "take", None)
        given = rows(10)
        assert engine.collect(engine.from_arrow(given, SHAPE)).column("id").to_pylist() == list(range(10))


def test_rows_go_the_long_way_where_strings_lie_otherwise(engine: Engine) -> None:
    engine.spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        assert not Handing(engine.spark).is_open
    finally:
        engine.spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "false")
    assert Handing(engine.spark).is_open
