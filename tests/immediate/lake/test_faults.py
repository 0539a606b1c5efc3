"""A crash at every step of a statement that IMMEDIATE stream tables follow: all of it happened, or none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.immediate.lake import shop
from tests.immediate.lake.checking import agree
from tests.killing import killed
from tests.scenarios.story import folder as folder_of
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.errors import ConcurrentModification, ForeignWrite, TrickleError
from trickle.testing import Fault, raise_at

States = dict[str, dict[str, dict[str, list[tuple[object, ...]]]]]
WALK = [(kind, *point) for kind in shop.STATEMENTS for point in shop.points() if kind == "update" or point[1] == 0]
KILLED = [("update", step, member) for step, member in shop.points() if (step, member) in shop.KILLED]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    place = tmp_path_factory.mktemp("template") / "wh"
    with shop.connect(place, spark) as t:
        shop.build(t)
    return place


@pytest.fixture(scope="module")
def states(template: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> States:
    """What readers see before and after each statement."""
    found: States = {}
    for kind, text in shop.STATEMENTS.items():
        copy = tmp_path_factory.mktemp("states") / "wh"
        shutil.copytree(template, copy)
        with shop.connect(copy, spark) as t:
            before = shop.contents(t)
            t.sql(text)
            found[kind] = {"before": before, "after": shop.contents(t)}
        assert all(before[name] != found[kind]["after"][name] for name in shop.NAMES)
    return found


@pytest.mark.parametrize("point", WALK, ids=str)
def test_an_exception_leaves_all_or_nothing(
    point: tuple[str, Step, int], template: Path, tmp_path: Path, spark: SparkSession, states: States
) -> None:
    kind, step, member = point
    shutil.copytree(template, tmp_path / "wh")
    t = shop.connect(tmp_path / "wh", spark)
    with raise_at(step, member) as seen, pytest.raises(Fault):
        t.sql(shop.STATEMENTS[kind])
    assert (step, member) in seen
    pinned = "after" if step is Step.FINALISED else "before"
    assert shop.contents(t) == states[kind][pinned], "readers see no half of it"
    t.close()
    _assert_recovered(tmp_path / "wh", kind, step, spark, states, killed=False)


@pytest.mark.parametrize("point", KILLED, ids=str)
def test_a_kill_leaves_all_or_nothing(
    point: tuple[str, Step, int], template: Path, tmp_path: Path, spark: SparkSession, states: States
) -> None:
    kind, step, member = point
    shutil.copytree(template, tmp_path / "wh")
    statement = shop.STATEMENTS[kind]
    killed("tests.immediate.lake.child", spark, str(tmp_path / "wh"), step.value, str(member), statement)
    _assert_recovered(tmp_path / "wh", kind, step, spark, states, killed=True)


def _assert_recovered(
    folder: Path, kind: str, step: Step, spark: SparkSession, states: States, *, killed: bool
) -> None:
    """A new process comes: all of it is there or none, nothing is left over, and statements go on."""
    side = "before" if step in shop.OLD_SIDE else "after"
    with shop.connect(folder, spark) as t:
        assert shop.contents(t) == states[kind][side]
        # What a killed statement staged of its own table, vacuum removes, as with any statement.
        assert [left for left in shop.leftovers(t) if not (killed and "/orders/" in left)] == []
        assert all(row.status in ("COMPLETED", "FAILED") for row in t.refresh_history())
        t.sql("INSERT INTO orders VALUES (77, 'kim', 77)")
        agree(t)


def test_the_walk_covers_every_step() -> None:
    assert {step for _, step, _ in WALK} == set(Step)
    assert len(KILLED) == len(shop.KILLED)


def test_a_stream_table_that_fails_takes_the_rest_back(template: Path, tmp_path: Path, spark: SparkSession) -> None:
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        t.create_stream_table("ratio", "SELECT 1 / (total - 15) AS r FROM totals", refresh_mode="IMMEDIATE")
        before = shop.contents(t)
        for _ in range(5):
            with pytest.raises(TrickleError, match=r"(?i)divi"):
                t.sql("INSERT INTO orders VALUES (4, 'ada', 5)")  # makes a total of 15
        assert shop.contents(t) == before
        assert shop.leftovers(t) == []
        assert {row.status for row in t.status()} == {"ACTIVE"}, "a statement that fails is nobody's error but its own"
        t.sql("INSERT INTO orders VALUES (4, 'ada', 6)")
        agree(t)


def test_somebody_writes_into_a_stream_table_between_intent_and_commit(
    template: Path, tmp_path: Path, spark: SparkSession
) -> None:
    """The unit can no longer happen: the statement has not happened, and what follows is built anew by the next."""
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        before = shop.contents(t)
        _between(t, "most", pa.table({"total": pa.array([0], pa.int64())}), error=ConcurrentModification)
        assert shop.contents(t) == before
        t.sql("INSERT INTO orders VALUES (4, 'eve', 4)")
        agree(t)
        assert contents_count(t) == 4


def test_somebody_writes_into_the_table_between_intent_and_commit(
    template: Path, tmp_path: Path, spark: SparkSession
) -> None:
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        before = shop.contents(t)
        row = pa.table({"id": pa.array([50], pa.int32()), "customer": ["out"], "amount": pa.array([50], pa.int32())})
        _between(t, "orders", row, error=ForeignWrite)
        assert shop.contents(t) == before
        t.refresh_stream_table("most")
        agree(t)
        assert contents_count(t) == 4, "their row, and not that of the statement that failed"


def contents_count(t: Trickle) -> int:
    return len(shop.contents(t)["orders"])


def _between(t: Trickle, name: str, rows: pa.Table, *, error: type[TrickleError]) -> None:
    """Run a statement, and write past Trickle when its intent stands, every time that it is tried."""
    place = folder_of(t, name)

    def watch(step: Step, _: int) -> None:
        if step is Step.INTENT_WRITTEN:
            write_deltalake(place, rows, mode="append", schema_mode="merge")

    t.sql("SET trickle.commit_attempts = 2")
    observe(watch)
    try:
        with pytest.raises(error):
            t.sql("INSERT INTO orders VALUES (60, 'lost', 60)")
    finally:
        observe(None)
