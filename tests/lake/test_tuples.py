"""Rows that have several values together."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from tests.lake.tables import shape
from trickle.lake.tuples import all_match, matching
from trickle.lake.types import arrow_schema

SHAPE = StructType(
    [
        *shape("i integer, l long, m decimal(9;2), day date, s string, f double").fields,
        StructField("tags", ArrayType(LongType())),
    ]
)
DAY, OTHER = date(2024, 1, 1), date(2024, 1, 2)
ROWS: list[tuple[Any, ...]] = [
    (1, 10, Decimal("1.00"), DAY, "a", 0.5, [1]),
    (1, 20, Decimal("-1.25"), DAY, "b", 1.5, [2]),
    (1, 20, Decimal("-1.25"), DAY, "b", 1.5, [2]),
    (2, 10, Decimal("1.00"), OTHER, "a", 2.5, []),
    (2, None, None, None, None, None, None),
    (None, 10, None, None, "a", None, None),
    (None, None, None, None, None, None, None),
]
TABLE = pa.table([list(column) for column in zip(*ROWS, strict=True)], schema=arrow_schema(SHAPE))


def found(**wanted: tuple[pa.DataType, list[Any]]) -> list[int]:
    """The numbers of the rows that are found."""
    table = pa.table([pa.array(values, kind) for kind, values in wanted.values()], names=list(wanted))
    chosen = matching(TABLE, SHAPE, table)
    assert chosen.schema == TABLE.schema
    places = [[row == given for given in TABLE.to_pylist()].index(True) for row in chosen.to_pylist()]
    return sorted(places)


EVERY = [0, 1, 1, 3, 4, 5, 6]


def test_values_are_wanted_together() -> None:
    # Each of the four values is there, and only two of the four pairs are wanted.
    assert found(i=(pa.int64(), [1, 2]), l=(pa.int32(), [20, 10])) == [1, 1, 3]
    assert found(l=(pa.int64(), [20, 10]), i=(pa.int64(), [1, 2])) == [1, 1, 3]
    assert found(i=(pa.int64(), [2]), l=(pa.int64(), [20])) == []


def test_wanted_twice_is_found_as_often_as_it_is_there() -> None:
    assert found(i=(pa.int64(), [1, 1, 1]), l=(pa.int64(), [20, 20, 10])) == [0, 1, 1]


def test_null_equals_nothing() -> None:
    assert found(i=(pa.int64(), [2, None, None, 1]), l=(pa.int64(), [None, 10, None, 10])) == [0]


def test_all_types_that_are_compared() -> None:
    assert found(
        m=(pa.decimal128(12, 2), [Decimal("-1.25"), Decimal("1.00")]), day=(pa.date32(), [DAY, OTHER]),
        s=(pa.string(), ["b", "a"]),
    ) == [1, 1, 3]  # fmt: skip


def test_nothing_is_wanted() -> None:
    assert found(i=(pa.int64(), []), l=(pa.int64(), [])) == []


def test_all_rows_where_values_are_not_compared_as_spark_does() -> None:
    assert found(i=(pa.int64(), [1]), f=(pa.float64(), [0.5])) == EVERY
    assert found(i=(pa.int64(), [1]), l=(pa.string(), ["10"])) == EVERY
    assert found(i=(pa.int64(), [1]), l=(pa.float64(), [10.0])) == EVERY


@pytest.mark.parametrize(
    "wanted",
    [
        {"i": (pa.int64(), [1, 2**40]), "l": (pa.int64(), [10, 10])},
        {"i": (pa.int64(), [1]), "m": (pa.decimal128(20, 2), [Decimal("123456789012.00")])},
        {"i": (pa.int64(), [1]), "m": (pa.decimal128(12, 3), [Decimal("1.005")])},
    ],
)
def test_all_rows_where_a_value_lies_outside_of_its_column(wanted: dict[str, tuple[pa.DataType, list[Any]]]) -> None:
    assert found(**wanted) == EVERY


def test_names_are_those_of_the_table_however_they_are_spelled() -> None:
    assert found(I=(pa.int64(), [1]), L=(pa.int64(), [10])) == [0]


@pytest.mark.parametrize(
    "wanted, answer",
    [
        ({"i": pa.array([1, 2, 3], pa.int64())}, True),
        ({"i": pa.array([1], pa.int64())}, False),
        ({"i": pa.array([1, 2], pa.int32()), "s": pa.array(["b", "a"])}, True),
        ({"i": pa.array([1, 2], pa.int32()), "s": pa.array(["a", "b"])}, False),
        ({"m": pa.array([Decimal("-1.25"), Decimal("1.00")], pa.decimal128(9, 2))}, True),
        # As narrower decimals some of these are others, to Arrow.
        ({"m": pa.array([Decimal("-1.25"), Decimal("1.00")], pa.decimal128(12, 2))}, False),
        ({"i": pa.array([1, 2, 1 << 40], pa.int64())}, False),
    ],
)
def test_whether_all_rows_are_among_them(wanted: dict[str, pa.Array], answer: bool) -> None:
    assert all_match(TABLE.slice(1, 3), SHAPE, pa.table(wanted)) is answer


def test_null_is_not_among_them() -> None:
    assert not all_match(TABLE, SHAPE, pa.table({"i": pa.array([None, 1, 2], pa.int32())}))
