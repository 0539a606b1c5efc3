"""Several writers of tables that an IMMEDIATE stream table follows: one after the other, whoever they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import trickle
from tests.immediate.lake.checking import agree, stands_at_its_sources
from tests.scenarios.story import contents
from tests.scenarios.test_concurrency import together
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.catalog import pins, relations
from trickle.catalog.records import Relation
from trickle.engine import Engine
from trickle.lake.snapshot import Snapshot
from trickle.sql.names import table_name
from trickle.tables.pinning import Standing, standing
from trickle.tables.writing import append_rows
from trickle.warehouse import Warehouse

ROOT = Path(__file__).parents[3]


def build(t: Trickle) -> None:
    """A sum over two tables: every statement on either moves it."""
    t.sql("CREATE TABLE a (x INT); CREATE TABLE b (x INT); INSERT INTO a VALUES (0); INSERT INTO b VALUES (0)")
    t.create_stream_table(
        "total",
        "SELECT sum(x) AS x, count(*) AS n FROM (SELECT x FROM a UNION ALL SELECT x FROM b)",
        refresh_mode="IMMEDIATE",
    )


def test_threads_on_two_tables_with_one_stream_table(t: Trickle) -> None:
    build(t)

    def write(table: str) -> None:
        for _ in range(3):
            t.sql(f"INSERT INTO {table} VALUES (1)")
            t.sql(f"UPDATE {table} SET x = x + 10 WHERE x = 0")

    assert together(lambda: write("a"), lambda: write("b")) == [None, None]
    assert contents(t, "total") == [(26, 8)]
    agree(t)


def test_a_statement_that_another_overtakes_begins_again(t: Trickle, engine: Engine) -> None:
    """A second connection writes the other table when the first has staged everything: its unit cannot be decided."""
    build(t)
    with trickle.connect(t.warehouse.root.uri, spark=engine.spark) as other:
        left = ["INSERT INTO b VALUES (100)"]

        def watch(step: Step, _: int) -> None:
            if step is Step.STAGED and left:
                other.sql(left.pop())

        observe(watch)
        try:
            t.sql("INSERT INTO a VALUES (1)")
        finally:
            observe(None)
        assert not left
    assert contents(t, "total") == [(101, 4)]
    agree(t)
    failed = [row for row in t.refresh_history("total") if row.status == "FAILED"]
    assert [row.error_code for row in failed] == ["CONCURRENT_MODIFICATION"]


def test_a_statement_that_began_before_the_table_was_followed_is_not_lost(t: Trickle) -> None:
    """It knew of no pin and committed as ever: its rows are taken in right after."""
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")

    def rows(_: Snapshot) -> DataFrame:
        t.create_stream_table("s", "SELECT sum(x) AS x FROM a", refresh_mode="IMMEDIATE")
        return t.warehouse.engine.spark.sql("SELECT 5 AS x")

    append_rows(t.warehouse, table_name("a"), rows)
    assert contents(t, "a") == [(1,), (5,)]
    assert contents(t, "s") == [(6,)]
    agree(t)


def test_rows_that_come_between_the_look_at_a_table_and_its_pin_stay_visible(
    t: Trickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1)")

    def late(warehouse: Warehouse, table: Relation) -> Standing:
        found = standing(warehouse, table)
        t.sql("INSERT INTO a VALUES (5)")
        return found

    monkeypatch.setattr("trickle.refresh.following.standing", late)
    t.create_stream_table("s", "SELECT sum(x) AS x FROM a", refresh_mode="IMMEDIATE")
    assert contents(t, "a") == [(1,), (5,)]
    assert contents(t, "s") == [(6,)]
    agree(t)


def test_a_stream_table_that_comes_while_a_statement_runs_is_followed(t: Trickle, engine: Engine) -> None:
    build(t)
    with trickle.connect(t.warehouse.root.uri, spark=engine.spark) as other:
        made: list[bool] = []

        def watch(step: Step, _: int) -> None:
            if step is Step.STAGED and not made:
                made.append(True)
                observe(None)
                other.create_stream_table("most", "SELECT max(x) AS x FROM a", refresh_mode="IMMEDIATE")

        observe(watch)
        try:
            t.sql("INSERT INTO a VALUES (50)")
        finally:
            observe(None)
    assert made
    assert contents(t, "most") == [(50,)]
    agree(t)


CHILD = """
import sys, trickle
with trickle.connect(sys.argv[1], spark="local[1]", create=False, settings={"commit_attempts": 50}) as t:
    for _ in range(4):
        t.sql(f"INSERT INTO {sys.argv[2]} VALUES (1)")
"""


@pytest.mark.timeout(500)
def test_another_process_writes_at_the_same_time(t: Trickle) -> None:
    build(t)
    t.sql("SET trickle.commit_attempts = 50")
    child = subprocess.Popen([sys.executable, "-c", CHILD, t.warehouse.root.uri, "b"], cwd=ROOT)
    written = 0
    while child.poll() is None and written < 60:
        t.sql("INSERT INTO a VALUES (1)")
        written += 1
        assert stands_at_its_sources(t, "total"), "seen at any moment"
    assert child.wait(timeout=400) == 0
    assert contents(t, "total") == [(written + 4, written + 6)]
    agree(t)
    with t.warehouse.catalog.read() as tx:
        numbers = {str(relations.by_id(tx, found).name): pin.number for found, pin in pins.of(tx).items()}
    assert numbers["a"] >= written
