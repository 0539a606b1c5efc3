"""The daemon: woken by anybody's commit, in step with its clock, stopped cleanly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import trickle
from tests.scenarios.story import contents
from tests.scheduler.conftest import at_step
from trickle.api import Trickle
from trickle.apply.steps import Step
from trickle.engine import Engine
from trickle.scheduler.control import drain, resume_all, scheduler_status
from trickle.scheduler.loop import run
from trickle.testing import check


@pytest.fixture
def live(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    """A warehouse whose clock runs."""
    with trickle.connect(tmp_path / "wh", spark=engine.spark) as opened:
        yield opened


@contextmanager
def keeping(t: Trickle) -> Iterator[threading.Event]:
    """Inside the block, a scheduler keeps the warehouse."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(t.warehouse, stop), name="keeping")
    thread.start()
    try:
        wait_for(lambda: scheduler_status(t.warehouse).leader is not None)
        time.sleep(0.5)
        yield stop
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def wait_for(told: Callable[[], bool], seconds: float = 30) -> float:
    """Wait until something is true; how long that took."""
    started = time.monotonic()
    while not told():
        assert time.monotonic() - started < seconds, "it did not happen"
        time.sleep(0.02)
    return time.monotonic() - started


def test_a_write_through_trickle_is_kept_up_with(live: Trickle) -> None:
    live.sql("CREATE TABLE orders (id BIGINT, amount BIGINT)")
    # Looking by itself would take a minute: it is the write that wakes it.
    live.sql("SET trickle.scheduler_interval_ms = 60000")
    live.create_stream_table("total", "SELECT SUM(amount) AS total FROM orders", schedule="1s")
    with keeping(live):
        time.sleep(1)
        live.sql("INSERT INTO orders VALUES (1, 10)")
        wait_for(lambda: contents(live, "total") == [(10,)])
        live.sql("INSERT INTO orders VALUES (2, 5)")
        wait_for(lambda: contents(live, "total") == [(15,)])
    assert scheduler_status(live.warehouse).state == "STOPPED"
    check(live)


def test_a_foreign_writer_is_noticed(live: Trickle, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "events", pa.table({"v": [1]}))
    live.attach_table("events", tmp_path / "events")
    live.sql("SET trickle.scheduler_interval_ms = 60000")
    live.create_stream_table("total", "SELECT SUM(v) AS total FROM events", schedule="1s")
    with keeping(live):
        time.sleep(1)
        write_deltalake(tmp_path / "events", pa.table({"v": [2]}), mode="append")
        wait_for(lambda: contents(live, "total") == [(3,)])
    check(live)


def test_without_notices_it_looks_by_itself(live: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trickle.scheduler.wake.Watcher.watch", lambda *_: None)
    live.sql("CREATE TABLE orders (id BIGINT)")
    live.sql("SET trickle.scheduler_interval_ms = 200")
    live.create_stream_table("n", "SELECT COUNT(*) AS n FROM orders", schedule="1s")
    with keeping(live):
        live.sql("INSERT INTO orders VALUES (1)")
        wait_for(lambda: contents(live, "n") == [(1,)])


def test_a_table_made_meanwhile_is_kept_too(live: Trickle) -> None:
    live.sql("CREATE TABLE orders (id BIGINT)")
    with keeping(live):
        live.create_stream_table("n", "SELECT COUNT(*) AS n FROM orders", schedule="1s")
        live.create_stream_table("twice", "SELECT 2 * n AS n FROM n", schedule="1s")
        live.sql("INSERT INTO orders VALUES (1)")
        wait_for(lambda: contents(live, "twice") == [(2,)])
    assert not [row for row in live.refresh_history() if row.status == "FAILED"]


def test_stopping_lets_what_is_running_end(live: Trickle) -> None:
    live.sql("CREATE TABLE orders (id BIGINT)")
    live.create_stream_table("n", "SELECT COUNT(*) AS n FROM orders", schedule="1s")
    live.create_stream_table("twice", "SELECT 2 * n AS n FROM n", schedule="calculated")
    with keeping(live) as stop:

        def slow() -> None:
            stop.set()
            time.sleep(0.3)

        with at_step(Step.STARTED, slow):
            live.sql("INSERT INTO orders VALUES (1)")
            wait_for(lambda: scheduler_status(live.warehouse).state == "STOPPED")
    assert contents(live, "n") == [(1,)], "it was running"
    assert contents(live, "twice") == [(0,)], "and this had not begun"


def test_a_slow_unit_does_not_hold_up_the_others(live: Trickle) -> None:
    live.sql("CREATE TABLE slow_source (id BIGINT)")
    live.sql("CREATE TABLE quick_source (id BIGINT)")
    live.create_stream_table("slow", "SELECT COUNT(*) AS n FROM slow_source", schedule="1s")
    live.create_stream_table("quick", "SELECT COUNT(*) AS n FROM quick_source", schedule="1s")
    let_go = threading.Event()
    caught = threading.Event()

    def hang_once() -> None:
        if not caught.is_set():
            caught.set()
            let_go.wait(30)

    with keeping(live), at_step(Step.STARTED, hang_once):
        live.sql("INSERT INTO slow_source VALUES (1)")
        assert caught.wait(30)
        for number in range(1, 3):
            live.sql("INSERT INTO quick_source VALUES (1)")
            wait_for(lambda number=number: contents(live, "quick") == [(number,)])  # type: ignore[misc]  # bound at once
        assert contents(live, "slow") == [(0,)]
        let_go.set()
        wait_for(lambda: contents(live, "slow") == [(1,)])


def test_a_drained_scheduler_goes_on_when_it_is_told(live: Trickle) -> None:
    live.sql("CREATE TABLE orders (id BIGINT)")
    live.create_stream_table("n", "SELECT COUNT(*) AS n FROM orders", schedule="1s")
    with keeping(live):
        assert drain(live.warehouse, timeout=10).state == "DRAINED"
        live.sql("INSERT INTO orders VALUES (1)")
        time.sleep(1.5)
        assert contents(live, "n") == [(0,)]
        resume_all(live.warehouse)
        wait_for(lambda: contents(live, "n") == [(1,)])
