from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from trickle.errors import InvalidData, InvalidName, TrickleError, UnsupportedTable
from trickle.postgres.connect import Connection
from trickle.publish.types import Column, columns_of, copy_lines

EVERY = T.StructType(
    [
        T.StructField("flag", T.BooleanType()),
        T.StructField("tiny", T.ByteType()),
        T.StructField("small", T.ShortType()),
        T.StructField("whole", T.IntegerType()),
        T.StructField("big", T.LongType()),
        T.StructField("single", T.FloatType()),
        T.StructField("double", T.DoubleType()),
        T.StructField("amount", T.DecimalType(12, 2)),
        T.StructField("fine", T.DecimalType(38, 18)),
        T.StructField("body", T.StringType()),
        T.StructField("raw", T.BinaryType()),
        T.StructField("day", T.DateType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("local", T.TimestampNTZType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField("__trickle_hidden", T.LongType()),
    ]
)
AT = datetime(2026, 3, 1, 12, 30, 59, 123456, tzinfo=UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "small": (pa.int16(), [-32768, 32767, None]),
    "whole": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "single": (pa.float32(), [0.1, float("inf"), None]),
    "double": (pa.float64(), [0.1, 1e300, None]),
    "amount": (pa.decimal128(12, 2), [Decimal("-9999999999.99"), Decimal("0.01"), None]),
    "fine": (pa.decimal128(38, 18), [Decimal("0.000000000000000001"), Decimal("-12345678901234567890.5"), None]),
    "body": (pa.string(), ["", 'tab\t, \\N "x"\r\n\\.\n', None]),
    "raw": (pa.binary(), [b"", b"\\\x00\xff", None]),
    "day": (pa.date32(), [date.min, date.max, None]),
    "at": (pa.timestamp("us", "UTC"), [AT, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None]),
    "local": (pa.timestamp("us"), [AT.replace(tzinfo=None), datetime(1, 1, 1), None]),
    "tags": (pa.string(), ['["a\\"b", null]', '{"x": {"y": [1.5]}}', None]),
}


def test_every_value_comes_back_as_it_was(connection: Connection) -> None:
    columns = columns_of(EVERY, "t")
    assert [column.name for column in columns] == list(VALUES), "hidden columns are not published"
    declared = ", ".join(f"{column.name} {column.type}" for column in columns)
    connection.execute(f"CREATE TABLE public.every ({declared})")
    rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in VALUES.items()})
    with connection.cursor().copy("COPY public.every FROM STDIN") as copy:
        copy.write(copy_lines(rows, columns, (), "t"))
    found = connection.execute("SELECT * FROM public.every").fetchall()
    expected = [list(column) for column in zip(*(values for _, values in VALUES.values()), strict=True)]
    expected[0][-1], expected[1][-1] = ['a"b', None], {"x": {"y": [1.5]}}
    assert [list(row) for row in found] == expected


def test_not_a_number_comes_back(connection: Connection) -> None:
    connection.execute("CREATE TABLE public.n (x real)")
    with connection.cursor().copy("COPY public.n FROM STDIN") as copy:
        copy.write(copy_lines(pa.table({"x": pa.array([float("nan")], pa.float32())}), [Column("x", "real")], (), "t"))
    assert connection.execute("SELECT x = 'NaN' FROM public.n").fetchone() == (True,)


@pytest.mark.parametrize(
    "column, values",
    [
        (Column("a", "text"), pa.array(["fine", "a\0b"])),
        (Column("a", "jsonb"), pa.array(['"\\\\\\u0000"'])),
        (Column("a", "date"), pa.array([-800_000], pa.date32())),
        (Column("a", "timestamp with time zone"), pa.array([2**60], pa.timestamp("us", "UTC"))),
    ],
    ids=["text", "json", "day", "moment"],
)
def test_a_value_that_cannot_be_held_names_its_column(column: Column, values: pa.Array) -> None:
    with pytest.raises(InvalidData, match="column 'a' of totals"):
        copy_lines(pa.table({"a": values}), [column], (), "totals")


def test_a_backslash_before_the_letters_of_nul_is_no_nul() -> None:
    text = pa.table({"a": ['"\\\\u0000"']})
    assert copy_lines(text, [Column("a", "jsonb")], (), "t") == b'"\\\\\\\\u0000"\n'


@pytest.mark.parametrize(
    "field, error",
    [
        (T.StructField("ctid", T.LongType()), InvalidName),
        (T.StructField("x" * 64, T.LongType()), InvalidName),
        (T.StructField("gap", T.DayTimeIntervalType()), UnsupportedTable),
    ],
)
def test_columns_that_postgresql_cannot_have(field: T.StructField, error: type[TrickleError]) -> None:
    with pytest.raises(error, match="cannot be published"):
        columns_of(T.StructType([field]), "t")


def test_a_wider_column_of_the_user_takes_the_values() -> None:
    assert Column("a", "text").takes("character varying(20)")
    assert Column("a", "numeric(12,2)").takes("numeric")
    assert not Column("a", "numeric(12,2)").takes("numeric(10,2)")
    assert not Column("a", "bigint").takes("integer")
