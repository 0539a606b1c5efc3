"""Two schedulers on one catalog, the leader killed again and again: nothing twice, nothing lost.

``TRICKLE_KILLS=20`` for the long run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import trickle
from tests.apply.shop import leftovers
from trickle.api import Trickle
from trickle.scheduler.control import scheduler_status
from trickle.testing import check

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("TRICKLE_KILLS", "2"))
GROUPS = 5


class Schedulers:
    """Two processes, one of which leads."""

    def __init__(self, t: Trickle, folder: Path, logs: Path) -> None:
        self.t, self.folder, self.logs = t, folder, logs
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        with (self.logs / f"scheduler-{time.monotonic_ns()}.log").open("wb") as log:
            command = [sys.executable, "-m", "tests.scheduler.child", str(self.folder)]
            self.running.append(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log))

    def leader(self) -> subprocess.Popen[bytes] | None:
        holder = scheduler_status(self.t.warehouse).leader
        pid = None if holder is None else int(holder.split(":")[1])
        return next((process for process in self.running if process.pid == pid), None)

    def kill_leader(self) -> None:
        leader = wait_for(self.leader)
        leader.send_signal(signal.SIGKILL)
        leader.wait()
        self.running.remove(leader)

    def end(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            assert process.wait(60) == 0, "a scheduler that is asked to ends cleanly"

    def told(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.logs.glob("*.log")))


@contextmanager
def two_schedulers(t: Trickle, folder: Path, logs: Path) -> Iterator[Schedulers]:
    schedulers = Schedulers(t, folder, logs)
    try:
        schedulers.start()
        schedulers.start()
        yield schedulers
        schedulers.end()
    finally:
        for process in schedulers.running:
            process.kill()
            process.wait()


def wait_for(ask, seconds: float = 90):
    started = time.monotonic()
    while True:
        found = ask()
        if found:
            return found
        assert time.monotonic() - started < seconds, "it did not happen"
        time.sleep(0.05)


@pytest.mark.timeout(120 + 60 * KILLS)
def test_nothing_twice_and_nothing_lost(tmp_path: Path, spark: SparkSession) -> None:
    rng = random.Random(20260101)
    events = tmp_path / "events"
    write_deltalake(events, rows(0))
    with trickle.connect(tmp_path / "wh", spark=spark) as t:
        t.attach_table("events", events)
        t.create_stream_table(
            "totals", "SELECT grp, COUNT(*) AS n, SUM(v) AS total FROM events GROUP BY grp", schedule="1s"
        )
        t.create_stream_table("top", "SELECT SUM(n) AS n, SUM(total) AS total FROM totals", schedule="calculated")
        written = [0]
        done = threading.Event()

        def write() -> None:
            while not done.is_set():
                written[0] += 1
                write_deltalake(events, rows(written[0]), mode="append")
                time.sleep(0.2)

        writer = threading.Thread(target=write)
        with two_schedulers(t, tmp_path / "wh", tmp_path) as schedulers:
            writer.start()
            try:
                for _ in range(KILLS):
                    before = version_of(t, "totals")
                    wait_for(lambda before=before: version_of(t, "totals") > before)
                    time.sleep(rng.uniform(0, 2))
                    schedulers.kill_leader()
                    schedulers.start()
            finally:
                done.set()
                writer.join()
            wait_for(lambda: stored(t, "totals") == expected(events))
            wait_for(lambda: sum(n for n, _ in stored(t, "totals").values()) == stored_top(t))
        tokens = Counter(line.split("token=")[1] for line in schedulers.told().splitlines() if "event=leading" in line)
        assert len(tokens) >= KILLS + 1
        assert set(tokens.values()) == {1}, "no two led with one token"
    with trickle.connect(tmp_path / "wh", spark=spark) as t:
        check(t)
        assert leftovers(t) == []


def rows(number: int) -> pa.Table:
    return pa.table({"grp": [number % GROUPS, (number + 1) % GROUPS], "v": [number, 1]})


def version_of(t: Trickle, name: str) -> int:
    return next(row.version or 0 for row in t.status() if row.name == name)


def _read(t: Trickle, name: str) -> list[dict[str, int]]:
    row = next(row for row in t.status() if row.name == name)
    found: list[dict[str, int]] = DeltaTable(str(row.location), version=row.version).to_pyarrow_table().to_pylist()
    return found


def stored(t: Trickle, name: str) -> dict[int, tuple[int, int]]:
    return {row["grp"]: (row["n"], row["total"]) for row in _read(t, name)}


def stored_top(t: Trickle) -> int:
    return _read(t, "top")[0]["n"]


def expected(events: Path) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for row in DeltaTable(str(events)).to_pyarrow_table().to_pylist():
        n, total = found.get(row["grp"], (0, 0))
        found[row["grp"]] = (n + 1, total + row["v"])
    return found
