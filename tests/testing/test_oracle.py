"""The oracle finds what is wrong, and lets floating-point noise pass."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.scenarios.story import folder, state
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.catalog import streams
from trickle.errors import UserError
from trickle.lake.commit import commit
from trickle.lake.location import Location
from trickle.lake.rewrite import append
from trickle.lake.snapshot import open_snapshot
from trickle.testing import Mismatch, check
from trickle.testing.oracle import differences


def test_a_right_stream_table_passes(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1), (1), (NULL); CREATE STREAM TABLE s AS SELECT x FROM a")
    check(t)
    check(t, "s")
    # It is compared at its frontier: what came later does not count yet.
    t.sql("INSERT INTO a VALUES (2)")
    check(t)


def test_rows_that_somebody_slipped_in_are_shown(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    snapshot = open_snapshot(Location.of(folder(t, "s")))
    engine = t.warehouse.engine
    version = commit(append(engine, snapshot, engine.sql("SELECT 5 AS x UNION ALL SELECT 1")).as_commit())
    # Readers see the pinned version, and so does the oracle.
    check(t)
    with t.warehouse.catalog.write() as tx:
        relation = streams.get(tx, TableName.of(["s"])).relation
        streams.update(tx, relation.id, now=t.warehouse.clock.now(), version=version)
    assert state(t, "s").version == version
    with pytest.raises(Mismatch, match="s differs from its query in 2 rows") as caught:
        check(t)
    assert "-1 {'x': 5}" in str(caught.value)
    assert "-1 {'x': 1}" in str(caught.value)


def test_what_is_empty_or_depends_on_chance_cannot_be_compared(t: Trickle) -> None:
    t.sql("CREATE STREAM TABLE empty WITH (initialize = false) AS SELECT 1 AS x")
    check(t)
    with pytest.raises(UserError, match="cannot be compared"):
        check(t, "empty")
    t.sql("CREATE STREAM TABLE dice AS SELECT rand() AS r")
    with pytest.raises(UserError, match="cannot be compared"):
        check(t, "dice")


def test_differences_count_copies_and_tell_null_from_nothing(spark: SparkSession) -> None:
    expected = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'a'), (2, NULL), (3, 'c') AS v(x, y)").toArrow()
    stored = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, ''), (3, 'c'), (3, 'c') AS v(x, y)").toArrow()
    found = {(row["x"], row["y"], weight) for row, weight in differences(expected, stored)}
    assert found == {(1, "a", 1), (2, None, 1), (2, "", -1), (3, "c", -1)}
    assert differences(expected, expected) == []


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("0.1D + 0.2D", "0.3D", True),
        ("1e300D", "1e300D * (1 + 1e-12D)", True),
        ("1.0D", "1.000001D", False),
        ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", True),
        ("CAST('NaN' AS DOUBLE)", "0D", False),
        ("CAST('Infinity' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", False),
        ("CAST(NULL AS DOUBLE)", "0D", False),
        ("-0D", "0D", True),
    ],
)
def test_only_floating_point_columns_have_a_tolerance(spark: SparkSession, one: str, other: str, same: bool) -> None:
    rows = [spark.sql(f"SELECT 1 AS k, {x} AS x").toArrow() for x in (one, other)]
    assert (differences(*rows) == []) is same


def test_maps_and_structs_are_compared_by_value(spark: SparkSession) -> None:
    one = spark.sql("SELECT map('a', 1, 'b', 2) AS m, named_struct('x', array(1, NULL)) AS s").toArrow()
    other = spark.sql("SELECT map('b', 2, 'a', 1) AS m, named_struct('x', array(1, NULL)) AS s").toArrow()
    assert differences(one, other) == []
    third = spark.sql("SELECT map('b', 2, 'a', 3) AS m, named_struct('x', array(1, NULL)) AS s").toArrow()
    assert len(differences(one, third)) == 2


def test_dates_that_python_does_not_know_are_compared(t: Trickle) -> None:
    t.sql("CREATE TABLE a (d DATE, at TIMESTAMP)")
    t.sql("INSERT INTO a VALUES (DATE'-0044-03-15', TIMESTAMP'12026-01-01 00:00:00')")
    t.create_stream_table("s", "SELECT d, at FROM a", refresh_mode="DIFFERENTIAL")
    check(t)
    t.sql("INSERT INTO a VALUES (DATE'+10000-01-01', NULL)")
    t.refresh_stream_table("s")
    check(t)
