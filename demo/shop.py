"""A small shop whose figures stay fresh, and stay right when its nightly load goes wrong.

Run it with ``make demo``. Three stream tables stand on top of each other; the scheduler ticks after every batch of
changes, and each refresh is compared with what its query gives when it is computed anew. Then a load empties the shop's
tables and dies: the fuse blows, and what stands on top keeps its last good figures until somebody has looked. The
warehouse is kept, to look around in.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from shop_data import LOADED, STREAM_TABLES, batches, empty, fill, load_again
from shop_screen import Screen

import trickle
from trickle.testing import check

OPENING = datetime(2026, 3, 2, 8, tzinfo=UTC)
FUSE: dict[str, Any] = {"fuse": "adaptive", "fuse_window_size": 3}
"""A baseline of three refreshes is enough for a demo."""


def main() -> int:
    """Run the demo; 0 when every refresh was right."""
    console = Console(highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="trickle-shop-"))
    try:
        with trickle.connect(folder) as t:
            Story(t, Screen(console)).play()
            location = next(row.location for row in t.status() if row.name == "segment_summary")
            summary = t.table("segment_summary").orderBy("segment").toArrow().to_pylist()
    except (AssertionError, trickle.TrickleError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for row in summary:
        console.print("  " + ", ".join(f"{name}: {value}" for name, value in row.items()))
    console.print(f"look around: {Path(sys.executable).with_name('trickle')} -w {folder} status", soft_wrap=True)
    console.print("the result is a Delta table; any Delta reader reads it:", soft_wrap=True)
    console.print(look_with_deltalake(str(location)), soft_wrap=True, markup=False)
    return 0


class Story:
    """The shop, hour by hour."""

    def __init__(self, t: trickle.Trickle, screen: Screen) -> None:
        self.t = t
        self.screen = screen
        self.now = OPENING

    def play(self) -> None:
        """The whole story."""
        self.screen.say("Spark starts, and the shop opens: customers, orders, order lines")
        fill(self.t)
        with self.screen.chapter(
            "three stream tables are created, each on top of the one before it, and a tick fills them"
        ):
            for name, query in STREAM_TABLES.items():
                self.screen.doing(f"creating {name}")
                options = FUSE if name in LOADED else {}
                schedule = "30m" if name == "segment_summary" else "calculated"
                self.t.create_stream_table(name, query, schedule=schedule, initialize=False, **options)
            self.tick()
        for batch in batches():
            with self.screen.chapter(batch.title):
                self.screen.doing("writing the changes")
                batch.happen(self.t)
                self.tick()
        with self.screen.chapter("nothing happens: a tick has nothing to do, and no Spark job runs"):
            assert self.tick() == [], "nobody should have had anything to do"
        self.night()
        done = [row for row in self.t.refresh_history() if row.status == "COMPLETED"]
        self.screen.say(f"{len(done)} refreshes, every one equal to its query")

    def night(self) -> None:
        """The load goes wrong, somebody looks, and all is well again."""
        good = self.summary()
        with self.screen.chapter("at night a load empties orders and order_lines, and dies"):
            kept = empty(self.t)
            results = self.tick()
            assert {result.action for result in results} == {"SKIP"}, f"the fuse should have blown: {results}"
        assert self.summary() == good, "what stands on top should be as it was"
        self.screen.say("the fuse has blown: the figures on top are still the last good ones")
        self.screen.say(f"  alert: {next(a.event for a in self.t.alerts())}, {self.t.fuse_status()[0].blow_reason}")
        found = self.t.inspect_fuse("order_totals", sample=2)
        self.screen.say(
            f"  inspect_fuse: of {found.rows_before} rows {found.deleted} would go and {found.inserted} would come; "
            f"downstream: {', '.join(found.downstream)}"
        )
        with self.screen.chapter("the load is mended and runs again; reset_fuse('order_totals', 'reinitialize')"):
            load_again(self.t, kept)
            self.t.reset_fuse("order_totals", "reinitialize")
            self.tick()
        assert self.summary() == good, "the shop should be as it was before the night"
        self.screen.say("all is well: the figures are those of the evening before")

    def tick(self) -> list[trickle.RefreshResult]:
        """An hour later the scheduler ticks; what it refreshed is compared with its query, computed anew."""
        self.now += timedelta(hours=1)
        self.screen.doing("the scheduler ticks")
        results = self.t.tick(now=self.now)
        for result in results:
            self.screen.doing(f"comparing {result.name} with its query")
            check(self.t, result.name)
            self.screen.refreshed(result)
        return results

    def summary(self) -> list[dict[str, object]]:
        """The figures that people look at."""
        rows: list[dict[str, object]] = self.t.table("segment_summary").orderBy("segment").toArrow().to_pylist()
        return rows


def look_with_deltalake(location: str) -> str:
    """A command that prints a table without Spark and without Trickle."""
    # Not by to_pyarrow_table: under load, a process that ends right after it aborts now and then.
    code = (
        "import pyarrow; from deltalake import DeltaTable, QueryBuilder; "
        f"rows = QueryBuilder().register('t', DeltaTable('{location}')).execute('SELECT * FROM t'); "
        "print(*pyarrow.table(rows).to_pylist(), sep='\\n')"
    )
    return f'{sys.executable} -c "{code}"'


if __name__ == "__main__":
    sys.exit(main())
