"""A small shop whose figures stay fresh: three stream tables, each on top of the one before it.

Run it with ``make demo``. After every batch of changes the stream tables are refreshed in order, and each is compared
with what its query gives when it is computed anew. The warehouse is kept, to look around in.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from shop_data import STREAM_TABLES, batches, fill
from shop_screen import Screen

import trickle
from trickle.testing import check


def main() -> int:
    """Run the demo; 0 when every refresh was right."""
    console = Console(highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="trickle-shop-"))
    try:
        with trickle.connect(folder) as t:
            play(t, Screen(console))
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


def play(t: trickle.Trickle, screen: Screen) -> None:
    """The whole story."""
    screen.say("Spark starts, and the shop opens: customers, orders, order lines")
    fill(t)
    with screen.chapter("three stream tables are created and filled, each on top of the one before it"):
        for name, query in STREAM_TABLES.items():
            screen.doing(f"creating {name}")
            t.create_stream_table(name, query, initialize=False)
            refresh(t, screen, name)
    for batch in batches():
        with screen.chapter(batch.title):
            screen.doing("writing the changes")
            batch.happen(t)
            for name in STREAM_TABLES:
                refresh(t, screen, name)
    with screen.chapter("nothing happens: no Spark job runs"):
        for name in STREAM_TABLES:
            idle = refresh(t, screen, name)
            assert (idle.action, idle.spark_jobs) == ("NO_DATA", 0), f"{name} should have had nothing to do: {idle}"
    screen.say(f"{len(t.refresh_history())} refreshes, every one equal to its query")


def refresh(t: trickle.Trickle, screen: Screen, name: str) -> trickle.RefreshResult:
    """Refresh a stream table and compare it with its query, computed anew."""
    screen.doing(f"refreshing {name}")
    result = t.refresh_stream_table(name)
    screen.doing(f"comparing {name} with its query")
    check(t, name)
    screen.refreshed(result)
    return result


def look_with_deltalake(location: str) -> str:
    """A command that prints a table without Spark and without Trickle."""
    code = (
        f"from deltalake import DeltaTable; print(*DeltaTable('{location}').to_pyarrow_table().to_pylist(), sep='\\n')"
    )
    return f'{sys.executable} -c "{code}"'


if __name__ == "__main__":
    sys.exit(main())
