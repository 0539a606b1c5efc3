"""An error may come after a unit was decided, and say of itself that another writer came first.

The statement has happened then: its files are the table's, and it must not be run again.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trickle
from tests.immediate.lake import shop
from tests.immediate.lake.checking import agree
from tests.immediate.lake.test_faults import States
from tests.immediate.lake.test_faults import states as states
from tests.immediate.lake.test_faults import template as template
from tests.postgres import Postgres
from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.catalog import intents, pins, relations, streams
from trickle.catalog.records import IntentMember
from trickle.errors import ConcurrentModification, TrickleError
from trickle.sql.names import table_name

DECIDED = [point for point in shop.points() if point[0] not in shop.OLD_SIDE]


@contextmanager
def overtaken_at(step: Step, member: int) -> Iterator[list[bool]]:
    """Have the catalog say once, at a step, that another session came first, as it says of deadlocks."""
    left = [True]

    def watch(reached: Step, place: int) -> None:
        if left and (reached, place) == (step, member):
            left.clear()
            raise ConcurrentModification("another session changed the catalog first")

    observe(watch)
    try:
        yield left
    finally:
        observe(None)


@pytest.mark.parametrize("kind", ["update", "insert"])
@pytest.mark.parametrize("point", DECIDED, ids=str)
def test_a_statement_that_is_decided_happens_once(
    kind: str, point: tuple[Step, int], template: Path, tmp_path: Path, spark: SparkSession, states: States
) -> None:
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        with overtaken_at(*point) as left:
            t.sql(shop.STATEMENTS[kind])
        assert not left
        assert shop.contents(t) == states[kind]["after"]
        assert shop.leftovers(t) == []
        t.sql("INSERT INTO orders VALUES (77, 'kim', 77)")
        agree(t)


@pytest.mark.parametrize("step", [Step.INTENT_WRITTEN, Step.TABLES_COMMITTED, Step.FINALISED], ids=str)
def test_a_compaction_that_is_decided_keeps_its_files(
    step: Step, template: Path, tmp_path: Path, spark: SparkSession
) -> None:
    shutil.copytree(template, tmp_path / "wh")
    with shop.connect(tmp_path / "wh", spark) as t:
        t.sql("INSERT INTO orders VALUES (8, 'eve', 2)")
        before = shop.contents(t)
        with overtaken_at(step, 0) as left:
            done = t.compact("orders")
        assert not left
        assert (done.files_before, done.files_after) == (2, 1)
        assert shop.contents(t) == before
        t.sql("INSERT INTO orders VALUES (77, 'kim', 77)")
        agree(t)


def test_who_decides_and_who_ends_a_unit_do_not_wait_for_each_other(
    tmp_path: Path, spark: SparkSession, postgres: Postgres
) -> None:
    """Another session locks the tables of a unit for one of its own, as it does, while this one is finalised."""
    with postgres.database() as url, trickle.connect(tmp_path / "wh", catalog=url, spark=spark) as t:
        shop.build(t)
        other = _Other(t)

        def watch(step: Step, _: int) -> None:
            if step is Step.TABLES_COMMITTED and not other.is_alive() and other.raised is None:
                other.start()
                assert other.holds_the_first.wait(30)

        observe(watch)
        try:
            t.sql("UPDATE orders SET amount = amount + 100 WHERE customer = 'ada'")
        finally:
            observe(None)
        other.join(60)
        assert isinstance(other.raised, ConcurrentModification)
        assert "committing one of the tables" in other.raised.message, "it was refused, and waited for nobody"
        assert contents(t, "totals") == [(None, 1), ("ada", 110), ("bob", 5)]
        agree(t)


class _Other(threading.Thread):
    """A session that decides a unit of the same tables: locks in ascending order, then the intent."""

    def __init__(self, t: Trickle) -> None:
        super().__init__()
        self.t = t
        self.holds_the_first = threading.Event()
        self.raised: TrickleError | None = None

    def run(self) -> None:
        catalog = self.t.warehouse.catalog
        try:
            with catalog.write() as tx:
                table, stream = (relations.get(tx, table_name(name)).id for name in ("orders", "totals"))
                number = pins.lock(tx, table).number
                self.holds_the_first.set()
                time.sleep(0.5)  # The other one is at its locks by now; a deadlock is looked for after a second.
                streams.lock(tx, stream)
                result = {"pin": {"version": 0, "position": None}}
                intents.add(tx, [IntentMember(table, 0, None, number + 1, None, result)], self.t.warehouse.clock.now())
        except TrickleError as error:
            self.raised = error
