"""Staged files: written by Spark, right in every value, and invisible."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from tests.lake.tables import (
    NUMBERS,
    contents,
    delta,
    delta_rs_contents,
    files_below,
    filled,
    frame,
    numbers_table,
    shape,
)
from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine
from trickle.errors import InvalidData, QueryError
from trickle.lake.commit import TableCommit, commit
from trickle.lake.create import create
from trickle.lake.location import Location
from trickle.lake.scan import read_files
from trickle.lake.snapshot import open_snapshot
from trickle.lake.stage import Target, discard, discard_stages, stage, stage_changes, stage_of
from trickle.lake.stages import stages_named


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return Location.of(tmp_path / "t")


def test_staged_files_are_invisible_until_a_commit_names_them(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    staged = stage(engine.spark.range(10, 20), table, small=True)
    assert (staged.rows, len(staged.files)) == (10, 1)
    assert re.fullmatch(rf"data-{staged.stage_id}/[\w.-]+\.parquet", staged.files[0].path)
    assert (staged.files[0].minimum, staged.files[0].maximum) == ({"id": 10}, {"id": 19})
    assert open_snapshot(table.location) == table
    commit(TableCommit(table.location, table.version, adds=staged.files))
    assert delta_rs_contents(table.location).total() == 11


def test_nothing_but_parquet_stays_and_no_rows_make_no_file(engine: Engine, place: Location) -> None:
    staged = stage(engine.spark.range(5), Target(place, NUMBERS))
    assert {file.path for file in staged.files} == files_below(place)
    empty = stage(engine.spark.range(5).where("id > 5"), Target(place, NUMBERS))
    assert empty.files == ()
    discard(place, staged.stage_id)
    discard(place, "never-there")
    assert files_below(place) == set()


@pytest.mark.portable
def test_partition_values_reach_the_log_exactly(engine: Engine, place: Location) -> None:
    schema = shape("id long, s string, d date, t timestamp, n timestamp_ntz, m decimal(20;7), b boolean")
    moment = datetime(2024, 3, 31, 1, 30, 0, 123456)
    rows = [
        (1, "a=b/c%20 ü\n'\"\\", date(1, 1, 1), moment.replace(tzinfo=UTC), moment, Decimal("0.0000001"), True),
        (2, None, None, None, None, None, None),
        (3, "UPPER", date(9999, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), moment, Decimal(-5), False),
        (4, "upper", date(9999, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), moment, Decimal(-5), False),
        (5, "n", date(2000, 2, 29), datetime(2000, 1, 1, tzinfo=UTC), moment, Decimal("12345678.9012345"), False),
    ]
    made = filled(engine, Path(place.uri), schema, rows, ["s", "d", "t", "n", "m", "b"])
    first = next(file for file in made.files if file.partition["s"] == "a=b/c%20 ü\n'\"\\")
    assert first.partition == {
        "s": "a=b/c%20 ü\n'\"\\",
        "d": "0001-01-01",
        "t": "2024-03-31 01:30:00.123456",
        "n": "2024-03-31 01:30:00.123456",
        "m": "0.0000001",
        "b": "true",
    }
    assert all(re.fullmatch(r"[\w./=-]+", file.path) for file in made.files)
    assert contents(engine, made) == delta_rs_contents(made.location) == dict.fromkeys(rows, 1)


def test_a_partition_gets_one_file_however_many_tasks_write(engine: Engine, place: Location) -> None:
    schema = shape("id long, p long")
    rows = engine.spark.range(0, 100, 1, 8).selectExpr("id", "id % 3 AS p")
    staged = stage(rows, Target(place, schema, ("p",)))
    assert sorted((file.partition["p"], file.rows) for file in staged.files) == [("0", 34), ("1", 33), ("2", 33)]


def test_moments_as_partition_values_do_not_depend_on_the_time_zone_of_the_session(
    engine: Engine, place: Location
) -> None:
    schema = shape("id long, t timestamp")
    winter_and_summer = [datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)]
    rows = frame(engine, schema, list(enumerate(winter_and_summer)))
    engine.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        staged = stage(rows, Target(place, schema, ("t",)))
    finally:
        engine.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted(str(file.partition["t"]) for file in staged.files) == [
        "2024-10-27 00:30:00.000000",
        "2024-10-27 01:30:00.000000",
    ]


def test_an_empty_text_as_partition_value_is_refused_because_readers_take_it_for_null(
    engine: Engine, place: Location
) -> None:
    schema = shape("id long, p string")
    with pytest.raises(InvalidData, match="partition column 'p' holds an empty text"):
        stage(frame(engine, schema, [(1, ""), (2, "x")]), Target(place, schema, ("p",)))
    assert files_below(place) == set()


def test_columns_with_the_names_of_helper_folders_are_no_problem(engine: Engine, place: Location) -> None:
    schema = shape("p0 long, pp0 string, p string")
    made = filled(engine, Path(place.uri), schema, [(1, "a", "x"), (2, "b", "y")], ["p"])
    assert contents(engine, made) == {(1, "a", "x"): 1, (2, "b", "y"): 1}


def test_null_in_a_not_null_column_is_refused_by_name_and_leaves_nothing(engine: Engine, place: Location) -> None:
    schema = shape("id long NOT NULL, p string NOT NULL")
    for row, name in [((None, "x"), "id"), ((1, None), "p")]:
        for partition_by in ((), ("p",)):
            with pytest.raises(InvalidData, match=f"'{name}' is NOT NULL"):
                stage(frame(engine, schema, [(5, "y"), row]), Target(place, schema, partition_by))
    assert files_below(place) == set()


def test_a_nested_not_null_column_may_hold_nulls_inside_but_not_be_null(engine: Engine, place: Location) -> None:
    inner = StructType([StructField("x", IntegerType())])
    target = Target(place, StructType([StructField("s", inner, False)]))
    held = engine.sql("SELECT named_struct('x', CAST(NULL AS INT)) AS s")
    assert stage(held, target).rows == 1
    with pytest.raises(InvalidData, match="'s' is NOT NULL"):
        stage(held.unionAll(engine.sql("SELECT CAST(NULL AS STRUCT<x: INT>) AS s")), target)


def test_columns_are_matched_by_name_whatever_order_and_case(engine: Engine, place: Location) -> None:
    target = Target(place, shape("a long, b string"))
    staged = stage(engine.sql("SELECT 'text' AS B, 1S AS a"), target)
    rows = read_files(engine, place, target.schema, staged.files)
    assert [tuple(row) for row in rows.collect()] == [(1, "text")]


@pytest.mark.parametrize(
    "query, complaint",
    [
        ("SELECT 1L AS a", "no column 'b'"),
        ("SELECT 1L AS a, 'x' AS b, 2 AS bb", "no column 'bb'"),
        ("SELECT 1L AS a, 'x' AS b, 'y' AS B", "twice"),
        ("SELECT '1' AS a, 'x' AS b", "'a' takes bigint, not string"),
        ("SELECT true AS a, 'x' AS b", "'a' takes bigint, not boolean"),
        ("SELECT 1L AS a, array(1) AS b", "'b' takes string, not array<int>"),
        ("SELECT 1L AS a, X'00' AS b", "'b' takes string, not binary"),
    ],
)
def test_rows_of_another_shape_are_refused(engine: Engine, place: Location, query: str, complaint: str) -> None:
    with pytest.raises(InvalidData, match=complaint):
        stage(engine.sql(query), Target(place, shape("a long, b string")))


def test_a_value_that_does_not_fit_fails_and_leaves_nothing(engine: Engine, place: Location) -> None:
    target = Target(place, shape("a integer, d decimal(4;2), t timestamp"))
    fits = "SELECT 2147483647L AS a, 9.99 AS d, DATE'2024-01-01' AS t"
    assert stage(engine.sql(fits), target).rows == 1
    too_big = "SELECT id + 2147483647L AS a, 1.00 AS d, current_timestamp() AS t FROM range(2)"
    with pytest.raises(InvalidData):
        stage(engine.sql(too_big), target)
    with pytest.raises(InvalidData):
        stage(engine.sql("SELECT 1 AS a, id + 99.99 AS d, current_timestamp() AS t FROM range(2)"), target)
    assert len(files_below(place)) == 1


def test_trap_arrow_string_views_are_accepted(engine: Engine, place: Location) -> None:
    views = pa.table({"s": pa.array(["a", None, "x" * 40], pa.string_view())})
    staged = stage(engine.from_arrow(views), Target(place, shape("s string")), small=True)
    assert (staged.rows, staged.files[0].nulls) == (3, {"s": 1})


def test_change_rows_are_counted_by_weight(engine: Engine, tmp_path: Path) -> None:
    table = create(Location.of(tmp_path), NUMBERS)
    staged, _ = stage_changes(delta(engine, NUMBERS, [((1,), 3), ((2,), -2), ((3,), -1)]), table.location)
    assert (staged.inserted, staged.deleted, staged.rows) == (3, 3, 3)
    assert all(path.startswith(f"_trickle_changes/{staged.stage_id}/") for path, _ in staged.files)
    nothing, _ = stage_changes(delta(engine, NUMBERS, []), table.location)
    assert (nothing.files, nothing.inserted, nothing.deleted) == ((), 0, 0)
    discard(table.location, staged.stage_id)
    assert files_below(table.location) == set()


def test_a_failed_change_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    broken = engine.spark.range(3).select("id", F.expr(f"CAST(1 / (id - 2) AS INT) AS {WEIGHT}"))
    with pytest.raises(QueryError, match="zero"):
        stage_changes(broken, location)
    assert files_below(location) == set()


def test_all_stages_of_one_refresh_can_be_discarded_together(engine: Engine, place: Location) -> None:
    with stages_named("refresh"):
        stage(engine.spark.range(1), Target(place, NUMBERS))
        stage_changes(delta(engine, NUMBERS, [((1,), 1)]), place)
    other = stage(engine.spark.range(1), Target(place, NUMBERS), small=True)
    discard_stages(place, "refresh")
    assert files_below(place) == {file.path for file in other.files}
    assert stage_of(other.files[0].path) == other.stage_id
    assert stage_of("_delta_log/0.json") is None
