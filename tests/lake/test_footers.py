"""Statistics from Parquet footers: never narrower than the truth."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, StructField, StructType

from tests.lake.tables import NUMBERS, shape, write_file
from trickle.errors import CorruptTable
from trickle.lake.datafile import DataFile
from trickle.lake.footers import Described, describe, describe_file, lower_bound, parse_stats, stats_json, upper_bound
from trickle.lake.location import Location, StoredFile


def test_rows_nulls_minimum_and_maximum_come_from_the_footer(tmp_path: Path) -> None:
    schema = shape("i long, d date, m decimal(38;18), s string, none string")
    table = pa.table(
        {
            "i": pa.array([3, None, 1], pa.int64()),
            "d": [date(2024, 2, 29), date(1969, 12, 31), None],
            "m": pa.array(
                [Decimal("12345678901234567890.123456789012345678"), Decimal("-0.5"), None], pa.decimal128(38, 18)
            ),
            "s": ["b", "a", "é"],
            "none": pa.array([None, None, None], pa.string()),
        }
    )
    file = write_file(Location.of(tmp_path), table, schema, "data-x/part.parquet")
    assert (file.path, file.rows) == ("data-x/part.parquet", 3)
    assert file.nulls == {"i": 1, "d": 1, "m": 1, "s": 0, "none": 3}
    assert file.minimum == {"i": 1, "d": "1969-12-31", "m": Decimal("-0.5"), "s": "a"}
    assert file.maximum["m"] == Decimal("12345678901234567890.123456789012345678")
    assert file.maximum["s"] == "é"


def test_floating_point_booleans_and_nested_columns_have_no_range(tmp_path: Path) -> None:
    schema = StructType(
        [
            StructField("f", DoubleType()),
            StructField("b", BooleanType()),
            StructField("s", StructType([StructField("x", LongType())])),
            StructField("l", ArrayType(LongType())),
        ]
    )
    table = pa.table({"f": [1.0, float("nan")], "b": [True, False], "s": [{"x": 1}, None], "l": [[1], []]})
    file = write_file(Location.of(tmp_path), table, schema, "part.parquet")
    assert file.minimum == file.maximum == {}
    assert file.nulls == {"f": 0, "b": 0}


def test_moments_are_kept_to_the_millisecond_with_the_maximum_rounded_up(tmp_path: Path) -> None:
    schema = shape("t timestamp, n timestamp_ntz")
    moment = datetime(2024, 5, 1, 12, 30, 0, 123456)
    table = pa.table(
        {
            "t": pa.array([moment.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "n": pa.array([moment], pa.timestamp("us")),
        }
    )
    file = write_file(Location.of(tmp_path), table, schema, "part.parquet")
    assert file.minimum == {"t": "2024-05-01T12:30:00.123Z", "n": "2024-05-01T12:30:00.123"}
    assert file.maximum == {"t": "2024-05-01T12:30:00.124Z", "n": "2024-05-01T12:30:00.124"}


def test_a_year_that_python_does_not_know_leaves_the_range_unknown(tmp_path: Path) -> None:
    far = pa.array([400_000_000_000_000_000], pa.int64()).cast(pa.timestamp("us"))
    file = write_file(Location.of(tmp_path), pa.table({"n": far}), shape("n timestamp_ntz"), "part.parquet")
    assert (file.rows, file.minimum, file.maximum) == (1, {}, {})


def test_a_file_with_several_row_groups_has_the_range_of_them_all(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [5, 1, 9, 2]}), tmp_path / "part.parquet", row_group_size=1)
    stored = StoredFile("part.parquet", 1, 0)
    file = describe_file(Location.of(tmp_path), Described(stored, {}), NUMBERS)
    assert (file.minimum, file.maximum, file.rows) == ({"id": 1}, {"id": 9}, 4)


def test_only_the_first_32_columns_have_ranges_and_all_have_null_counts(tmp_path: Path) -> None:
    schema = shape(", ".join(f"c{n} long" for n in range(40)))
    file = write_file(Location.of(tmp_path), pa.table({f"c{n}": [n] for n in range(40)}), schema, "part.parquet")
    assert (len(file.minimum), len(file.nulls)) == (32, 40)


@given(st.text(max_size=80), st.text(max_size=80))
def test_long_text_is_cut_so_that_the_range_still_holds_it(one: str, other: str) -> None:
    low, high = sorted((one, other))
    shortened, raised = lower_bound(low), upper_bound(high)
    assert isinstance(shortened, str)
    assert shortened <= low
    assert len(shortened) <= 32
    assert raised is None or (isinstance(raised, str) and raised >= high and len(raised) <= 33)


def test_text_above_which_nothing_can_be_written_has_no_maximum() -> None:
    assert upper_bound("x" * 32 + "\U0010ffff" * 5) is None
    assert upper_bound(datetime.max) is None


def test_statistics_survive_the_log_with_every_digit() -> None:
    exact = Decimal("12345678901234567890.123456789012345678")
    file = DataFile("p", 1, rows=3, minimum={"d": exact, 'q"': "ü"}, maximum={"d": exact}, nulls={"d": 0})
    assert parse_stats(stats_json(file)) == (3, file.minimum, file.maximum, file.nulls)
    assert "12345678901234567890.123456789012345678" in stats_json(file)


def test_trap_statistics_are_never_empty_text() -> None:
    assert json.loads(stats_json(DataFile("p", 1))) == {"minValues": {}, "maxValues": {}, "nullCount": {}}


def test_many_files_are_described_in_their_order(tmp_path: Path) -> None:
    for n in range(20):
        pq.write_table(pa.table({"id": [n]}), tmp_path / f"{n:02}.parquet")
    location = Location.of(tmp_path)
    files = describe(location, [Described(file, {}) for file in location.walk()], NUMBERS)
    assert [file.minimum["id"] for file in files] == list(range(20))


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "part.parquet").write_bytes(b"nothing")
    with pytest.raises(CorruptTable, match=r"part\.parquet"):
        describe_file(Location.of(tmp_path), Described(StoredFile("part.parquet", 7, 0), {}), NUMBERS)
