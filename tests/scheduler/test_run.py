"""Ticks carried out: order, the cut, side by side, failures, retries, tiers, pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tests.scenarios.story import ask, contents
from tests.scheduler.conftest import at_step
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.errors import TransientError
from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.control import drain, parallel_job_status, pause_all, resume_all, scheduler_status
from trickle.scheduler.lease import Leadership
from trickle.scheduler.run import Scheduler, memory_of, tick
from trickle.testing import check

Later = Callable[[float], None]


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    """Orders, totals of them, and a report on the totals."""
    t.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12,2))")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 5)")
    stream(t, "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    stream(t, "report", "SELECT COUNT(*) AS customers, SUM(total) AS total FROM totals")
    return t


def stream(t: Trickle, name: str, query: str, **options: object) -> None:
    given: dict[str, object] = {"schedule": "5s", **options}
    t.create_stream_table(name, query, **given)  # type: ignore[arg-type]  # options by name, whatever they are


def order(t: Trickle, number: int, customer: str = "eve") -> None:
    t.sql(f"INSERT INTO orders VALUES ({number}, '{customer}', 1)")


def actions(results: list[RefreshResult]) -> dict[str, str]:
    return {result.name: result.action for result in results}


def setting(t: Trickle, name: str, value: object) -> None:
    t.sql(f"SET trickle.{name} = {value}")


def test_a_change_runs_down_the_graph_in_one_tick(shop: Trickle, later: Later) -> None:
    order(shop, 3)
    assert tick(shop.warehouse) == [], "nothing is due yet"
    later(5)
    assert [result.name for result in tick(shop.warehouse)] == ["totals", "report"]
    check(shop)
    assert contents(shop, "report")[0][0] == 3
    later(5)
    assert tick(shop.warehouse) == []
    last = shop.refresh_history("report")[0]
    assert (last.initiated_by, last.status) == ("SCHEDULER", "COMPLETED")


def test_a_write_after_the_cut_waits_for_the_next_tick(shop: Trickle, later: Later) -> None:
    order(shop, 3, "eve")
    later(5)
    with scheduler_of(shop) as scheduler:
        scheduler.begin(shop.warehouse.clock.now())
        order(shop, 4, "mallory")
        while scheduler.runs:
            scheduler.step(wait=True)
    assert [row[0] for row in contents(shop, "totals")] == ["ada", "bob", "eve"]
    later(5)
    tick(shop.warehouse)
    assert [row[0] for row in contents(shop, "totals")] == ["ada", "bob", "eve", "mallory"]
    check(shop)


@contextmanager
def scheduler_of(t: Trickle) -> Iterator[Scheduler]:
    """A scheduler without its loop."""
    leader = Leadership.take(t.warehouse, timedelta(seconds=15))
    assert leader is not None
    with leader:
        scheduler = Scheduler(t.warehouse, leader, memory_of(t.warehouse))
        yield scheduler
        scheduler.close()


def test_two_slow_units_overlap_in_time(shop: Trickle, later: Later) -> None:
    stream(shop, "sizes", "SELECT id, amount > 5 AS is_large FROM orders")
    order(shop, 3)
    later(5)
    inside: list[tuple[float, float]] = []

    def slow() -> None:
        began = time.monotonic()
        time.sleep(0.5)
        inside.append((began, time.monotonic()))

    with at_step(Step.STARTED, slow):
        done = actions(tick(shop.warehouse))
    assert {"totals", "sizes"} <= done.keys()
    first, second = sorted(inside)[:2]
    assert second[0] < first[1], "the second began before the first had ended"
    check(shop)
    jobs = {row.members: row for row in parallel_job_status(shop.warehouse)}
    assert {row.status for row in jobs.values()} == {"SUCCEEDED"}


def test_one_by_one_when_asked_for(shop: Trickle, later: Later) -> None:
    stream(shop, "sizes", "SELECT id, amount > 5 AS is_large FROM orders")
    setting(shop, "parallel_refresh_mode", "off")
    order(shop, 3)
    later(5)
    under_way: list[int] = []
    now = 0
    lock = threading.Lock()

    def enter() -> None:
        nonlocal now
        with lock:
            now += 1
            under_way.append(now)
        time.sleep(0.2)
        with lock:
            now -= 1

    with at_step(Step.STARTED, enter):
        tick(shop.warehouse)
    assert max(under_way) == 1


def test_a_failing_unit_stops_only_what_reads_it(shop: Trickle, later: Later) -> None:
    stream(shop, "ratio", "SELECT SUM(100 / (id - 3)) AS r FROM orders", refresh_mode="FULL")
    stream(shop, "on_ratio", "SELECT r + 1 AS r FROM ratio")
    order(shop, 3)
    later(5)
    results = {result.name: result for result in tick(shop.warehouse)}
    assert (results["ratio"].action, results["on_ratio"].action) == ("FAILED", "SKIP")
    assert "upstream ratio is held: its refresh failed" in results["on_ratio"].reason
    assert results["report"].action != "FAILED"
    check(shop, "report")
    assert {row.status for row in parallel_job_status(shop.warehouse) if row.members == "ratio"} == {"PERMANENT_FAILED"}
    assert shop.refresh_history("on_ratio")[0].status == "SKIPPED"


def test_a_reason_is_entered_once(shop: Trickle, later: Later) -> None:
    shop.suspend_stream_table("totals")
    order(shop, 3)
    for _ in range(3):
        later(5)
        assert set(actions(tick(shop.warehouse)).values()) == {"SKIP"}
    skipped = [row for row in shop.refresh_history("report") if row.status == "SKIPPED"]
    assert len(skipped) == 1
    assert skipped[0].reason == "upstream totals is held: it is suspended"
    shop.resume_stream_table("totals")
    later(5)
    tick(shop.warehouse)
    check(shop)


def test_errors_that_pass_are_tried_again(shop: Trickle, later: Later) -> None:
    order(shop, 3)
    later(5)
    tries = []

    def fail_twice() -> None:
        tries.append(1)
        if len(tries) <= 2:
            raise TransientError("not now")

    with at_step(Step.STAGED, fail_twice):
        results = tick(shop.warehouse)
    assert [result.name for result in results] == ["totals", "report"]
    assert "FAILED" not in actions(results).values()
    check(shop)


def test_errors_that_do_not_pass_end_the_tries(shop: Trickle, later: Later) -> None:
    setting(shop, "refresh_retries", 1)
    order(shop, 3)
    later(5)

    def fail() -> None:
        raise TransientError("not now")

    with at_step(Step.STAGED, fail):
        results = actions(tick(shop.warehouse))
    assert results == {"totals": "FAILED", "report": "SKIP"}
    assert [row.status for row in parallel_job_status(shop.warehouse)] == ["RETRYABLE_FAILED"]
    later(5)
    tick(shop.warehouse)
    check(shop)


def test_the_policy_of_a_diamond(shop: Trickle, later: Later) -> None:
    stream(shop, "counts", "SELECT COUNT(*) AS n FROM orders", schedule="30s")
    stream(shop, "both", "SELECT n, (SELECT COUNT(*) FROM totals) AS c FROM counts", diamond_schedule_policy="slowest")
    order(shop, 3)
    later(5)
    assert tick(shop.warehouse) == [], "counts is not due, and all of them go together"
    later(25)
    assert {"totals", "counts", "both"} <= actions(tick(shop.warehouse)).keys()
    shop.alter_stream_table("both", diamond_schedule_policy="fastest")
    order(shop, 4)
    later(5)
    assert {"totals", "counts", "both"} <= actions(tick(shop.warehouse)).keys()
    check(shop)


def test_cold_and_frozen_tables(shop: Trickle, later: Later) -> None:
    shop.alter_stream_table("totals", tier="cold")
    shop.alter_stream_table("report", tier="frozen")
    order(shop, 3)
    later(49)
    assert tick(shop.warehouse) == []
    later(1)
    assert actions(tick(shop.warehouse)).keys() == {"totals"}
    later(10_000)
    assert tick(shop.warehouse) == []


def test_paused_and_drained_schedulers_begin_nothing(shop: Trickle, later: Later) -> None:
    order(shop, 3)
    later(5)
    assert pause_all(shop.warehouse, "maintenance", by="ada").state == "PAUSED"
    assert tick(shop.warehouse) == []
    assert scheduler_status(shop.warehouse).pause_reason == "maintenance"
    resume_all(shop.warehouse)
    assert drain(shop.warehouse, timeout=5).state == "DRAINED"
    assert tick(shop.warehouse) == []
    assert resume_all(shop.warehouse).state == "STOPPED"
    assert actions(tick(shop.warehouse)).keys() == {"totals", "report"}


def test_a_drain_lets_what_is_running_end(shop: Trickle, later: Later) -> None:
    order(shop, 3)
    later(5)
    states: list[str] = []

    def drained() -> None:
        states.append(drain(shop.warehouse, timeout=0).state)

    with at_step(Step.STARTED, drained):
        results = actions(tick(shop.warehouse))
    assert states == ["DRAINING"]
    assert results.keys() == {"totals"}, "totals had begun, its reader had not"


def test_what_takes_too_long_is_stretched_and_said(shop: Trickle, later: Later) -> None:
    shop.alter_stream_table("totals", schedule="1s")
    shop.alter_stream_table("report", schedule="1h")
    order(shop, 3)
    later(1)
    with at_step(Step.STARTED, lambda: later(1.1)):
        tick(shop.warehouse)
    assert [row.event for row in shop.alerts()] == ["scheduler_falling_behind"]
    order(shop, 4)
    later(1.5)
    assert tick(shop.warehouse) == [], "twice the schedule from now on"
    later(0.5)
    assert actions(tick(shop.warehouse)).keys() == {"totals"}


def test_data_that_is_too_old_is_said_once(shop: Trickle, later: Later) -> None:
    shop.alter_stream_table("totals", freshness_deadline="1m")
    shop.suspend_stream_table("totals")
    order(shop, 3)
    for _ in range(3):
        later(40)
        tick(shop.warehouse)
    assert [row.event for row in shop.alerts() if row.event == "stale_data"] == ["stale_data"]


def test_now_stands_for_the_time_of_the_tick(shop: Trickle, later: Later) -> None:
    order(shop, 3)
    soon = shop.warehouse.clock.now() + timedelta(seconds=6)
    assert actions(tick(shop.warehouse, soon)).keys() == {"totals", "report"}
    row = next(row for row in shop.status() if row.name == "totals")
    assert row.data_timestamp is not None
    assert abs(row.data_timestamp - soon) < timedelta(seconds=1)


def test_a_reader_never_sees_half_a_unit(t: Trickle, later: Later) -> None:
    t.sql("CREATE TABLE orders (id BIGINT)")
    stream(t, "left_way", "SELECT COUNT(*) AS n FROM orders")
    stream(t, "right_way", "SELECT COUNT(id) AS n FROM orders")
    stream(t, "top", "SELECT l.n AS l, r.n AS r FROM left_way l CROSS JOIN right_way r")
    seen: set[tuple[int, ...]] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            (row,) = ask(t, "SELECT l.n, r.n, t.l, t.r FROM left_way l CROSS JOIN right_way r CROSS JOIN top t")
            seen.add(row)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(4):
            t.sql(f"INSERT INTO orders VALUES ({number})")
            later(5)
            assert actions(tick(t.warehouse)).keys() == {"left_way", "right_way", "top"}
    finally:
        done.set()
        reader.join()
    assert len(seen) > 1
    assert all(len(set(row)) == 1 for row in seen), seen
