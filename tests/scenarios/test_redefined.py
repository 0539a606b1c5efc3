"""What comes between the steps of a refresh, or before the first: new definitions, moved warehouses, bad commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trickle
from trickle import Trickle
from trickle.apply.steps import Step, observe
from trickle.errors import ConcurrentModification, UnsupportedQuery, UnsupportedTable
from trickle.testing import Fault, check, raise_at


def test_a_query_changed_before_the_first_fill_gives_its_own_columns(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT, y INT); INSERT INTO a VALUES (1, 2)")
    t.create_stream_table("s", "SELECT x FROM a", initialize=False)
    t.alter_stream_table("s", query="SELECT y, x FROM a", initialize=False)
    assert t.refresh_stream_table("s").action == "REINITIALIZE"
    assert [tuple(row) for row in t.table("s").collect()] == [(2, 1)]
    check(t)


def test_a_definition_that_comes_during_a_refresh_is_not_lost(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE VIEW v AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM v; INSERT INTO a VALUES (2)")

    def redefine(step: Step, _: int) -> None:
        if step is Step.STAGED:
            t.sql("CREATE OR REPLACE VIEW v AS SELECT x * 10 AS x FROM a")

    observe(redefine)
    try:
        with pytest.raises(ConcurrentModification):
            t.refresh_stream_table("s")
    finally:
        observe(None)
    assert t.refresh_stream_table("s").action == "REINITIALIZE"
    assert sorted(row.x for row in t.table("s").collect()) == [10, 20]
    check(t)


def test_a_suspension_outlives_a_forced_refresh(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    t.suspend_stream_table("s")
    t.sql("INSERT INTO a VALUES (2)")
    t.refresh_stream_table("s", force=True)
    check(t)
    assert t.status()[0].status == "SUSPENDED"


def test_a_commit_that_cannot_happen_leaves_the_warehouse_usable(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    with pytest.raises(UnsupportedTable, match="timestampNtz"):
        t.alter_stream_table("s", query="SELECT x, TIMESTAMP_NTZ'2026-01-01 00:00:00' AS at FROM a")
    assert [row.x for row in t.table("s").collect()] == [1]
    t.sql("DROP STREAM TABLE s")


def test_a_warehouse_that_was_moved_with_an_intent_is_rolled_forward(tmp_path: Path, spark: SparkSession) -> None:
    with trickle.connect(tmp_path / "here", spark=spark) as t:
        t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
        t.sql("INSERT INTO a VALUES (2)")
        with raise_at(Step.INTENT_WRITTEN), pytest.raises(Fault):
            t.refresh_stream_table("s")
    (tmp_path / "here").rename(tmp_path / "there")
    with trickle.connect(tmp_path / "there", spark=spark) as t:
        assert sorted(row.x for row in t.table("s").collect()) == [1, 2]
        check(t)


def test_a_clock_inside_a_view_is_seen(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE VIEW v AS SELECT x, now() AS at FROM a; CREATE STREAM TABLE s AS TABLE v")
    assert t.refresh_stream_table("s").action == "FULL"
    t.sql("CREATE VIEW some AS SELECT x FROM a LIMIT 3")
    with pytest.raises(UnsupportedQuery, match="LIMIT without ORDER BY"):
        t.create_stream_table("u", "SELECT x FROM some")


def test_a_condition_with_chance_decides_once(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT, y INT); INSERT INTO a SELECT id, 0 FROM range(200)")
    chance = "WHEN MATCHED AND rand() < 0.5 THEN UPDATE SET y = 1"
    t.sql(f"MERGE INTO a USING (SELECT id FROM range(200)) s ON a.x = s.id {chance}")
    rows = t.table("a").collect()
    assert len(rows) == 200, "an update never deletes"
    assert 0 < sum(row.y for row in rows) < 200
