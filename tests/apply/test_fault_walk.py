"""A crash at every step between the start of a refresh and its end: wholly old or wholly new, never half.

Exceptions are raised in this process; SIGKILL ends another one for real.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.apply import shop
from tests.killing import killed
from trickle.apply.steps import Step
from trickle.errors import TrickleError
from trickle.testing import Fault, check, raise_at

UNITS = (("per_customer",), shop.UNIT)
States = dict[str, dict[str, list[tuple[object, ...]]]]
WALK = [(names, step, member) for names in UNITS for step, member in shop.points(names)]


def label(point: tuple[tuple[str, ...], Step, int]) -> str:
    names, step, member = point
    return f"{len(names)} {step.value} {member}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A warehouse in which every stream table has something to refresh."""
    folder = tmp_path_factory.mktemp("template") / "wh"
    with shop.connect(folder, spark) as t:
        shop.build(t)
    return folder


@pytest.fixture(scope="module")
def states(template: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> States:
    """What readers see before the refresh and after it."""
    copy = tmp_path_factory.mktemp("states") / "wh"
    shutil.copytree(template, copy)
    with shop.connect(copy, spark) as t:
        before = shop.contents(t)
        shop.refresh_unit(t, shop.UNIT)
        after = shop.contents(t)
    assert all(before[name] != after[name] for name in shop.UNIT)
    return {"before": before, "after": after}


@pytest.mark.parametrize("point", WALK, ids=label)
def test_an_exception_leaves_old_or_new(
    point: tuple[tuple[str, ...], Step, int], template: Path, tmp_path: Path, spark: SparkSession, states: States
) -> None:
    names, step, member = point
    shutil.copytree(template, tmp_path / "wh")
    t = shop.connect(tmp_path / "wh", spark)
    with raise_at(step, member) as seen, pytest.raises(Fault):
        shop.refresh_unit(t, names)
    assert (step, member) in seen
    pinned = states["after"] if step is Step.FINALISED else states["before"]
    assert shop.contents(t, names) == {name: pinned[name] for name in names}, "readers see no half of a unit"
    t.close()
    _assert_recovered(tmp_path / "wh", names, step, spark, states)


@pytest.mark.parametrize("point", WALK, ids=label)
def test_a_kill_leaves_old_or_new(
    point: tuple[tuple[str, ...], Step, int], template: Path, tmp_path: Path, spark: SparkSession, states: States
) -> None:
    names, step, member = point
    shutil.copytree(template, tmp_path / "wh")
    killed("tests.apply.child", spark, str(tmp_path / "wh"), step.value, str(member), *names)
    _assert_recovered(tmp_path / "wh", names, step, spark, states)


def _assert_recovered(folder: Path, names: tuple[str, ...], step: Step, spark: SparkSession, states: States) -> None:
    """A new process comes: contents, history and storage agree, and the next refresh is right."""
    side = "before" if step in shop.OLD_SIDE else "after"
    with shop.connect(folder, spark) as t:
        assert shop.contents(t, names) == {name: states[side][name] for name in names}
        assert shop.leftovers(t) == []
        for name in names:
            last = t.refresh_history(name)[0]
            status = next(row for row in t.status() if row.name == name)
            if side == "after":
                assert (last.status, last.version_after) == ("COMPLETED", status.version)
            else:
                assert last.status in ("FAILED", "COMPLETED")
                assert last.version_after in (None, status.version)
        shop.refresh_unit(t, names)
        assert shop.contents(t, names) == {name: states["after"][name] for name in names}
        check(t)
        assert shop.leftovers(t) == []


def test_the_walk_covers_every_step() -> None:
    assert {step for _, step, _ in WALK} == set(Step)


def test_a_failed_member_rolls_its_unit_back(template: Path, tmp_path: Path, spark: SparkSession) -> None:
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        shop.refresh_unit(t, shop.UNIT)
        t.sql("CREATE STREAM TABLE ratio AS SELECT 1 / (n - 3) AS r FROM both")
        before = shop.contents(t, (*shop.UNIT, "ratio"))
        t.sql("DELETE FROM orders WHERE id = 4")  # three orders are left, and the ratio has no value
        with pytest.raises(TrickleError):
            shop.refresh_unit(t, (*shop.UNIT, "ratio"))
        assert shop.contents(t, (*shop.UNIT, "ratio")) == before
        outcome = {row.name: (row.status, row.error_code) for row in reversed(t.refresh_history())}
        assert outcome["per_customer"] == ("FAILED", "ROLLED_BACK")
        assert outcome["ratio"][0] == "FAILED"
        assert shop.leftovers(t) == []
