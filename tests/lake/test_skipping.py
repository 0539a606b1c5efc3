from __future__ import annotations

import datetime as dt
import json
import operator
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add
from trickle.errors import UnknownColumn
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.skipping import overlapping, prune
from trickle.lake.snapshot import Snapshot, open_snapshot


def table_of(kind: Any, *files: DataFile) -> Snapshot:
    schema = StructType([StructField("c", kind)])
    return Snapshot(Location.of("/nowhere"), 0, "id", schema, (), files, {})


def file_with(low: object, high: object, *, nulls: int | None = 0, rows: int | None = 10) -> DataFile:
    return DataFile(
        f"{low}-{high}.parquet",
        1,
        rows=rows,
        minimum={} if low is None else {"c": low},
        maximum={} if high is None else {"c": high},
        nulls={} if nulls is None else {"c": nulls},
    )


LONGS = table_of(LongType(), file_with(0, 9), file_with(10, 19), file_with(20, 29))


@pytest.mark.parametrize(
    "op, value, kept",
    [
        ("=", 10, [1]),
        ("=", 9, [0]),
        ("<=>", 25, [2]),
        ("=", 99, []),
        ("<", 10, [0]),
        ("<=", 10, [0, 1]),
        (">", 19, [2]),
        (">=", 19, [1, 2]),
        ("in", [5, 25], [0, 2]),
        ("in", [], []),
        ("<>", 5, [0, 1, 2]),
        ("=", 9.5, []),
        (">", 9.5, [1, 2]),
        ("=", None, []),
        ("<=>", None, []),
        ("is null", None, []),
        ("is not null", None, [0, 1, 2]),
        ("=", "not a number", [0, 1, 2]),
        ("like", 5, [0, 1, 2]),
    ],
)
def test_files_outside_the_comparison_are_left_out(op: str, value: object, kept: list[int]) -> None:
    assert prune(LONGS, [("c", op, value)]) == tuple(LONGS.files[n] for n in kept)


def test_all_comparisons_must_hold() -> None:
    assert prune(LONGS, [("c", ">", 5), ("C", "<", 15)]) == LONGS.files[:2]
    assert prune(LONGS, []) == LONGS.files


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UnknownColumn):
        prune(LONGS, [("d", "=", 1)])


def test_ranges_include_their_ends_and_may_be_open() -> None:
    assert overlapping(LONGS.files, {"c": (9, 10)}, LONGS.schema) == LONGS.files[:2]
    assert overlapping(LONGS.files, {"c": (None, 9)}, LONGS.schema) == LONGS.files[:1]
    assert overlapping(LONGS.files, {"c": (20, None)}, LONGS.schema) == LONGS.files[2:]
    assert overlapping(LONGS.files, {}, LONGS.schema) == LONGS.files


def test_trap_unknown_statistics_keep_the_file(foreign: MakeForeign) -> None:
    known = json.dumps({"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 1}, "nullCount": {"id": 0}})
    table = foreign()
    table.commit(
        add("known.parquet", stats=known),
        add("empty.parquet", stats=""),
        add("none.parquet"),
        add("half.parquet", stats='{"numRecords": 1, "minValues": {"id": 5}}'),
    )
    kept = prune(open_snapshot(table.location), [("id", "=", 7)])
    assert {file.path for file in kept} == {"empty.parquet", "none.parquet", "half.parquet"}


def test_nulls_are_looked_for_where_they_may_be() -> None:
    none, some, only, unknown = (
        file_with(1, 5, nulls=0),
        file_with(1, 5, nulls=3),
        file_with(None, None, nulls=10),
        file_with(1, 5, nulls=None),
    )
    table = table_of(LongType(), none, some, only, unknown)
    assert prune(table, [("c", "is null", None)]) == (some, only, unknown)
    assert prune(table, [("c", "<=>", None)]) == (some, only, unknown)
    assert prune(table, [("c", "is not null", None)]) == (none, some, unknown)
    assert prune(table, [("c", "=", 3)]) == (none, some, unknown)


def test_floating_point_never_skips_for_nan_is_in_no_statistics() -> None:
    table = table_of(DoubleType(), file_with(Decimal("1.0"), Decimal("2.0")))
    assert prune(table, [("c", ">", 5.0)]) == table.files
    assert prune(table, [("c", "=", 5)]) == table.files


def test_the_maximum_of_text_may_be_a_prefix() -> None:
    table = table_of(StringType(), file_with("b", "cc"))
    assert prune(table, [("c", "=", "ccz")]) == table.files
    assert prune(table, [("c", ">", "ccz")]) == table.files
    assert prune(table, [("c", "=", "cd")]) == ()
    assert prune(table, [("c", "<", "b")]) == ()
    assert prune(table, [("c", "=", 5)]) == table.files


def test_text_of_another_collation_never_skips() -> None:
    table = table_of(StringType("UTF8_LCASE"), file_with("b", "c"))
    assert prune(table, [("c", "=", "B")]) == table.files


def test_a_timestamp_may_be_cut_to_the_millisecond() -> None:
    table = table_of(TimestampType(), file_with("2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.456Z"))

    def at(microsecond: int) -> dt.datetime:
        return dt.datetime(2024, 1, 1, 0, 0, 0, microsecond, dt.UTC)

    assert prune(table, [("c", "=", at(456_999))]) == table.files
    assert prune(table, [("c", ">", at(456_500))]) == table.files
    assert prune(table, [("c", ">", at(458_000))]) == ()
    assert prune(table, [("c", "<", at(123_000))]) == ()
    assert prune(table, [("c", "=", at(123_000).replace(tzinfo=None))]) == table.files
    assert prune(table, [("c", "=", dt.date(2030, 1, 1))]) == table.files


def test_dates_are_compared_in_both_spellings() -> None:
    table = table_of(DateType(), file_with("2024-01-01", "2024-01-31"), file_with(dt.date(2024, 2, 1), "2024-02-29"))
    assert prune(table, [("c", "=", dt.date(2024, 2, 3))]) == table.files[1:]
    assert prune(table, [("c", "<", "2024-01-15")]) == table.files[:1]


def test_a_decimal_that_passed_through_floating_point_is_found(tmp_path: Path) -> None:
    """deltalake writes 1e+20 as the minimum of a number just below it."""
    value = Decimal("99999999999999999999.9999999999")
    write_deltalake(tmp_path, pa.table({"d": pa.array([value], pa.decimal128(38, 10))}))
    snapshot = open_snapshot(Location.of(tmp_path))
    assert prune(snapshot, [("d", "=", value)]) == snapshot.files
    assert prune(snapshot, [("d", "<", Decimal(5))]) == ()
    small = table_of(DecimalType(10, 2), file_with(Decimal("1.00"), Decimal("2.00")))
    assert prune(small, [("c", ">", Decimal("2.00"))]) == ()


def test_partition_values_are_exact(foreign: MakeForeign) -> None:
    table = foreign("id long, p date", partition_by=["p"])
    for number, value in enumerate(["2024-01-01", "2024-01-02", None, ""]):
        table.commit(add(f"{number}.parquet", partition={"p": value}))
    snapshot = open_snapshot(table.location)

    def kept(op: str, value: object = None) -> list[str]:
        return [file.path[0] for file in prune(snapshot, [("p", op, value)])]

    assert kept("=", dt.date(2024, 1, 2)) == ["1"]
    assert kept(">", dt.date(2024, 1, 1)) == ["1"]
    assert kept("is null") == ["2", "3"]
    assert kept("is not null") == ["0", "1"]


@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=6)), min_size=1, max_size=4), min_size=1, max_size=5),
    st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"]),
    st.text(max_size=6),
    st.integers(1, 4),
)
def test_no_file_with_a_matching_row_is_ever_left_out(
    contents: list[list[str | None]], op: str, value: str, cut: int
) -> None:
    compare: dict[str, Callable[[str, str], bool]] = {
        "=": operator.eq,
        "<=>": operator.eq,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    files = []
    for number, rows in enumerate(contents):
        known = [row for row in rows if row is not None]
        low, high = (min(known)[:cut], max(known)[:cut]) if known else (None, None)
        file = file_with(low, high, nulls=len(rows) - len(known), rows=len(rows))
        files.append(DataFile(**{**vars(file), "path": str(number)}))
    kept = {file.path for file in prune(table_of(StringType(), *files), [("c", op, value)])}
    must = {
        str(n) for n, rows in enumerate(contents) if any(row is not None and compare[op](row, value) for row in rows)
    }
    assert must <= kept
