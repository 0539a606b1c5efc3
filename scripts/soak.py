"""Stream tables that keep themselves fresh for ten minutes: does memory stay, and do they still equal their queries?

    python scripts/soak.py                      50 stream tables over 10 sources for 10 minutes
    python scripts/soak.py --minutes 60

A writer changes the sources all the time while the scheduler runs beside it. It fails when a refresh failed, when a
stream table differs from its query or does not catch up in the end, or when memory grows: the median of the last
quarter may exceed that of the quarter before by 10 % and 50 MB. Measured are the resident memory of Python and of the
JVM, and what is alive in the JVM's heap after a collection. The heap is limited to 1 GB: without a limit, resident
memory grows for as long as there is room, and says nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import trickle
from trickle.api import Trickle
from trickle.engine import Engine
from trickle.testing import Mismatch, check

GROWTH = 1.10
SLACK_MB = 50.0
SAMPLE_SECONDS = 10.0
HEAP = "1g"
CATCH_UP_SECONDS = 180.0
PER_SOURCE = (
    ("sums", "SELECT k, sum(v) AS v, count(*) AS n FROM {own} GROUP BY k"),
    ("large", "SELECT k, v FROM {own} WHERE v > 500"),
    ("joined", "SELECT l.k, l.v, r.v AS other FROM {own} l JOIN sums{next} r ON l.k = r.k"),
    ("highest", "SELECT k, max(v) AS v FROM large{number} GROUP BY k"),
    ("means", "SELECT s.k, s.v / s.n AS mean, h.v FROM sums{number} s JOIN highest{number} h ON s.k = h.k"),
)
"""What reads each source: a chain, a diamond, and a join with what reads the next source."""


@dataclass
class Memory:
    """Memory of this process and of the JVM, over time, in MB."""

    jvm: Any
    samples: dict[str, list[float]] = field(default_factory=dict)

    def sample(self) -> None:
        runtime = self.jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        self._add("live heap", (runtime.totalMemory() - runtime.freeMemory()) / 2**20)
        self._add("python", _resident(os.getpid()))
        self._add("jvm", _resident(self.jvm.java.lang.ProcessHandle.current().pid()))

    def _add(self, what: str, megabytes: float) -> None:
        self.samples.setdefault(what, []).append(megabytes)

    def faults(self) -> list[str]:
        """Who has grown over the last half."""
        found = []
        for who, values in self.samples.items():
            third, fourth = _quarter(values, 3), _quarter(values, 4)
            if fourth > third * GROWTH + SLACK_MB:
                found.append(f"{who} has grown from {third:.0f} to {fourth:.0f} MB over the last half")
        return found

    def words(self) -> str:
        """The median of each quarter."""
        shown = []
        for who, values in self.samples.items():
            quarters = " ".join(f"{_quarter(values, number):.0f}" for number in range(1, 5))
            shown.append(f"{who} {quarters} MB")
        return ", ".join(shown)


def _resident(pid: int) -> float:
    # ps is on Linux and macOS alike.
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)  # noqa: S607 - as above
    return int(found.stdout) / 1024


def _quarter(values: Sequence[float], number: int) -> float:
    size = len(values) / 4
    part = values[int((number - 1) * size) : int(number * size)]
    return median(part or values[-1:])


def build(t: Trickle, sources: int, tables: int) -> None:
    """The sources with some rows, and stream tables until there are enough."""
    for number in range(sources):
        t.sql(f"CREATE TABLE x{number} (id BIGINT, k BIGINT, v BIGINT)")
        t.sql(f"INSERT INTO x{number} SELECT id, id % 20, (id * 7919) % 1000 FROM range(2000)")
    made = 0
    for what, query in PER_SOURCE:
        for number in range(sources):
            if made < tables:
                text = query.format(own=f"x{number}", number=number, next=(number + 1) % sources)
                t.create_stream_table(f"{what}{number}", text, schedule="5s")
                made += 1
    if made < tables:
        raise SystemExit(f"{sources} sources have {made} stream tables, not {tables}")


def write(t: Trickle, sources: int, stop: threading.Event, seed: int) -> int:
    """Change a source now and then; how often."""
    chance, written = random.Random(seed), 0  # noqa: S311 - a story that can be told again
    while not stop.wait(chance.uniform(0.2, 1.0)):
        source, key = f"x{chance.randrange(sources)}", chance.randrange(2000)
        statements = (
            f"INSERT INTO {source} SELECT id, id % 20, id % 1000 FROM range({key}, {key + 5})",
            f"UPDATE {source} SET v = {chance.randrange(1000)} WHERE id = {key}",
            f"DELETE FROM {source} WHERE id BETWEEN {key} AND {key + 5}",
        )
        t.sql(chance.choice(statements))
        written += 1
    return written


def is_caught_up(t: Trickle) -> bool:
    """Whether nothing is left to be done."""
    return all(t.explain_refresh_mode(row.name).action == "NO_DATA" for row in t.status())


def soak(t: Trickle, memory: Memory, sources: int, minutes: float, seed: int) -> list[str]:
    """Run it; what was wrong in the end."""
    stop = threading.Event()
    scheduler = threading.Thread(target=t.run, args=(stop,), name="scheduler")
    sampler = threading.Thread(target=_sampled, args=(memory, stop), name="sampler")
    done = threading.Event()
    threading.Timer(minutes * 60, done.set).start()
    scheduler.start()
    sampler.start()
    faults = []
    try:
        written = write(t, sources, done, seed)
        end = time.monotonic() + CATCH_UP_SECONDS
        while not (caught_up := is_caught_up(t)) and time.monotonic() < end:
            time.sleep(2)
        if not caught_up:
            faults.append(f"not caught up {CATCH_UP_SECONDS:.0f} seconds after the last change")
    finally:
        stop.set()
        scheduler.join()
        sampler.join()
    history = t.refresh_history(limit=1_000_000)
    failed = [row for row in history if row.status == "FAILED"]
    faults += [f"{row.name} failed: {row.error_message}" for row in failed[:10]]
    moved = sum(row.status == "COMPLETED" for row in history)
    print(f"{written} statements, {moved} refreshes, {len(failed)} failed; by quarter: {memory.words()}")
    return faults + memory.faults() + _drift(t)


def _sampled(memory: Memory, stop: threading.Event) -> None:
    while not stop.wait(SAMPLE_SECONDS):
        memory.sample()


def _drift(t: Trickle) -> list[str]:
    faults = []
    for row in t.status():
        try:
            check(t, row.name)
        except Mismatch as error:
            faults.append(str(error))
    return faults


def main() -> int:
    """Whether all went well, as the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--sources", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("TRICKLE_DRIVER_MEMORY", HEAP)
    engine = Engine.open("local[2]")
    # The public API of Spark does not lead to its process.
    memory = Memory(engine.spark.sparkContext._jvm)
    with (
        tempfile.TemporaryDirectory(prefix="trickle-soak-") as folder,
        trickle.connect(Path(folder) / "wh", spark=engine.spark) as t,
    ):
        build(t, given.sources, given.tables)
        print(f"{given.tables} stream tables over {given.sources} sources for {given.minutes:g} minutes", flush=True)
        faults = soak(t, memory, given.sources, given.minutes, given.seed)
    engine.close()
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
