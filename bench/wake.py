"""From a commit to the stream table that shows it, with the scheduler at work: nobody asks for the refresh.

A small change is committed through Trickle, or by another writer into an attached table; the time ends when the catalog
shows the stream table's new version. Then a tick over stream tables that have nothing to do, which must not cost
anything worth mentioning.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

import trickle
from bench.data import SUMMARY, batch, fill
from bench.figures import Line, timed
from bench.resting import add_resting
from bench.sizes import Sizes
from trickle import Trickle
from trickle.scheduler.loop import run as keep
from trickle.scheduler.run import tick

VISIBLE_LIMIT_MS = 1000.0
TICK_LIMIT_MS = 100.0
_PATIENCE_SECONDS = 60.0


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """Commit to visible for two writers, then ticks at rest."""
    fill(t, "wake_orders", sizes.wake_rows, sizes.table_groups)
    t.create_stream_table("wake_summary", SUMMARY.format(table="wake_orders"), schedule="1s")
    folder = Path(t.warehouse.root.uri, "foreign")
    write_deltalake(folder, batch(0, sizes.wake_rows, sizes.table_groups))
    t.attach_table("wake_events", folder)
    t.create_stream_table("wake_events_summary", SUMMARY.format(table="wake_events"), schedule="1s")
    # What is asked is how long one change takes, not how a schedule is stretched on a machine that cannot keep it.
    t.sql("SET trickle.auto_backoff = off")
    facts = {"source_rows": sizes.wake_rows, "changed_rows": 10}
    with _keeping(t):
        ours = _visible(t, sizes, "wake_summary", lambda n: t.write("wake_orders", _rows(sizes, n)))
        yield Line("commit to visible, t.write", ours, facts, VISIBLE_LIMIT_MS)
        foreign = _visible(
            t, sizes, "wake_events_summary", lambda n: write_deltalake(folder, _rows(sizes, n), mode="append")
        )
        yield Line("commit to visible, foreign writer", foreign, facts, VISIBLE_LIMIT_MS)
    yield _at_rest(t, sizes)


def _rows(sizes: Sizes, number: int) -> pa.Table:
    return batch(sizes.wake_rows + number * 10, 10, sizes.table_groups)


def _visible(t: Trickle, sizes: Sizes, name: str, write: Callable[[int], object]) -> tuple[float, ...]:
    """From the end of a write to the new version, for some writes with a rest between them."""
    samples = []
    for number in range(sizes.wakes + 1):
        # Longer than the schedule: a change that comes at once after another waits for its turn, as it should.
        time.sleep(1.5)
        before = _version(t, name)
        write(number)
        took, _ = timed(_wait, partial(_is_newer, t, name, before))
        # The first round warms Spark up.
        if number > 0:
            samples.append(took)
    return tuple(samples)


def _is_newer(t: Trickle, name: str, before: int) -> bool:
    return _version(t, name) > before


def _version(t: Trickle, name: str) -> int:
    return next(row.version or 0 for row in t.status() if row.name == name)


def _wait(told: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not told():
        assert time.monotonic() < until, "the scheduler did not notice"
        time.sleep(0.005)


@contextmanager
def _keeping(t: Trickle) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=keep, args=(t.warehouse, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _at_rest(t: Trickle, sizes: Sizes) -> Line:
    """Ticks in which every stream table is due and none has anything to do."""
    with trickle.connect(Path(t.warehouse.root.uri, "at_rest")) as resting:
        add_resting(resting, sizes.resting_tables, sizes.resting_sources)
        samples = []
        for _ in range(sizes.changes + 1):
            time.sleep(1.1)
            took, results = timed(tick, resting.warehouse)
            assert results == [], results
            samples.append(took)
        # The proof that no Spark job ran: this connection never asked for a session.
        assert not resting.warehouse.engine.started
    facts = {"stream_tables": sizes.resting_tables, "sources": sizes.resting_sources, "spark_jobs": 0}
    return Line("a tick at rest", tuple(samples[1:]), facts, TICK_LIMIT_MS)
