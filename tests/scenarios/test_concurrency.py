"""Several writers and refreshers on one warehouse: threads here, another process where it matters."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pyarrow as pa
from deltalake import write_deltalake

import trickle
from tests.scenarios.story import ask, changed, contents, folder, refreshed, state
from tests.scheduler.conftest import at_step
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.engine import Engine
from trickle.errors import ConcurrentModification
from trickle.refresh.execute import refresh
from trickle.testing import check


def together(*works: Callable[[], object]) -> list[BaseException | None]:
    """Run works in threads that start at the same moment; what each of them raised."""
    start = threading.Barrier(len(works), timeout=60)
    raised: list[BaseException | None] = [None] * len(works)

    def run(place: int, work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            raised[place] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=100)
    return raised


def test_inserts_at_the_same_time_lose_nothing(t: Trickle) -> None:
    t.sql("CREATE TABLE a (who INT, n INT)")

    def insert(who: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(5):
                assert changed(t, f"INSERT INTO a VALUES ({who}, {number})") == (1, 0)

        return work

    assert together(insert(1), insert(2)) == [None, None]
    assert contents(t, "a") == [(who, number) for who in (1, 2) for number in range(5)]


def test_updates_at_the_same_time_are_all_counted(t: Trickle) -> None:
    """Each update reads what the other has written: a lost one would show."""
    t.sql("CREATE TABLE counter (n INT); INSERT INTO counter VALUES (0)")

    def increment() -> None:
        for _ in range(3):
            assert changed(t, "UPDATE counter SET n = n + 1") == (1, 1)

    assert together(increment, increment) == [None, None]
    assert contents(t, "counter") == [(6,)]


def test_two_connections_refresh_one_stream_table(t: Trickle, engine: Engine) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    with trickle.connect(t.warehouse.root.uri, spark=engine.spark) as other:
        for number in range(2, 4):
            t.sql(f"INSERT INTO a VALUES ({number})")
            raised = together(lambda: t.refresh_stream_table("s"), lambda: other.refresh_stream_table("s"))
            assert all(error is None or isinstance(error, ConcurrentModification) for error in raised)
            assert None in raised
            check(t)
            assert contents(t, "s") == contents(other, "s") == [(x,) for x in range(1, number + 1)]
    # One that came too late is no error of the stream table's.
    assert (state(t, "s").status, state(t, "s").consecutive_errors) == ("ACTIVE", 0)
    assert all(row.status in ("COMPLETED", "FAILED") for row in t.refresh_history("s"))
    refreshed(t, "n")
    assert contents(t, "n") == [(3,)]


def test_a_refresh_beside_one_that_is_at_work_is_told_so_and_leaves_no_trace(t: Trickle) -> None:
    """Whether two refreshes meet at the beginning or at the commit, the second gets the same error."""
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    t.sql("INSERT INTO a VALUES (2)")
    before = len(t.refresh_history("s"))
    second: list[BaseException | None] = []
    with at_step(Step.STARTED, lambda: second.extend(together(lambda: t.refresh_stream_table("s")))):
        refreshed(t, "s")
    (error,) = second
    assert isinstance(error, ConcurrentModification)
    assert "another refresh of s is at work" in str(error)
    assert error.hint is not None
    assert "try again" in error.hint
    assert len(t.refresh_history("s")) == before + 1
    check(t)
    assert contents(t, "s") == [(1,), (2,)]


def test_members_of_a_unit_are_told_of_the_one_that_is_at_work(t: Trickle) -> None:
    """The error is about the one that is being refreshed, not about the one that waits for it."""
    t.sql("CREATE TABLE a (x INT); CREATE STREAM TABLE one AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE two AS SELECT x FROM a")
    t.sql("INSERT INTO a VALUES (1)")
    rows = {name: len(t.refresh_history(name)) for name in ("one", "two")}
    second: list[BaseException | None] = []
    names = [TableName.of(["one"]), TableName.of(["two"])]
    with at_step(Step.STARTED, lambda: second.extend(together(lambda: refresh(t.warehouse, names)))):
        refreshed(t, "two")
    assert [type(error) for error in second] == [ConcurrentModification]
    assert "another refresh of two is at work" in str(second[0])
    assert len(t.refresh_history("one")) == rows["one"]
    assert len(t.refresh_history("two")) == rows["two"] + 1


def test_a_writer_and_a_refresher_at_the_same_time(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE STREAM TABLE s AS SELECT count(*) AS n, sum(x) AS x FROM a")

    def write() -> None:
        for number in range(6):
            t.sql(f"INSERT INTO a VALUES ({number})")

    def keep_fresh() -> None:
        for _ in range(4):
            t.refresh_stream_table("s")
            check(t)

    assert together(write, keep_fresh) == [None, None]
    refreshed(t, "s")
    assert contents(t, "s") == [(6, 15)]


CHILD = """
import sys
import pyarrow as pa
import trickle
from deltalake import write_deltalake

with trickle.connect(sys.argv[1], create=False) as t:
    place = next(row.location for row in t.tables() if row.name == "a")
    for number in range(20):
        write_deltalake(place, pa.table({"x": pa.array([100 + number], pa.int32())}), mode="append")
        t.sql(f"SET trickle.max_consecutive_errors = {number + 1}")
    assert not t.warehouse.engine.started
"""


def test_another_process_writes_and_sets_while_this_one_does(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (0); CREATE STREAM TABLE s AS SELECT x FROM a")
    child = subprocess.Popen([sys.executable, "-c", CHILD, t.warehouse.root.uri])
    for number in range(1, 4):
        t.sql(f"INSERT INTO a VALUES ({number}); UPDATE a SET x = x WHERE x = {number}")
        t.sql(f"SET trickle.history_retention_days = {number}")
    assert child.wait(timeout=60) == 0
    assert [row[0] for row in contents(t, "a")] == [*range(4), *range(100, 120)]
    refreshed(t, "s")
    values = {row.name: row.value for row in t.settings()}
    assert (values["max_consecutive_errors"], values["history_retention_days"]) == ("20", "3")


def test_tables_made_at_the_same_time_share_a_name_only_once(t: Trickle) -> None:
    raised = together(*[lambda: t.sql("CREATE TABLE same AS SELECT 1 AS x") for _ in range(2)])
    assert sum(error is None for error in raised) == 1
    assert contents(t, "same") == [(1,)]
    place = folder(t, "same")
    assert [p.name for p in place.parent.iterdir()] == [place.name]
    assert ask(t, "SELECT count(*) FROM same") == [(1,)]


def test_an_outside_append_between_refreshes_is_not_lost(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE STREAM TABLE s AS SELECT x FROM a")
    write_deltalake(folder(t, "a"), pa.table({"x": pa.array([2], pa.int32())}), mode="append")
    refreshed(t, "s")
    assert contents(t, "s") == [(1,), (2,)]
