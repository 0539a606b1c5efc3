"""What the demo shows: a live table for every batch on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from trickle import RefreshResult

TICK = "✓"
_COLUMNS = {"stream table": 16, "action": 8, "+rows": 5, "-rows": 5, "ms": 6, "jobs": 4, "reason": None, "right": 5}
_NUMBERS = ("+rows", "-rows", "ms", "jobs")


class Screen:
    """Tells the story of the demo."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._table = _empty_table()

    def say(self, text: str) -> None:
        """A line of the story."""
        elapsed = time.monotonic() - self._started
        self._console.print(f"[{elapsed:5.1f} s] {text}", markup=False, soft_wrap=True)

    @contextmanager
    def chapter(self, title: str) -> Iterator[None]:
        """A batch of changes with its refreshes."""
        self.say(title)
        if not self._console.is_terminal:
            yield
            return
        self._table = _empty_table()
        with Live(self._table, console=self._console, refresh_per_second=8):
            yield

    def doing(self, text: str) -> None:
        """What takes its time just now; stands below the live table until the next row."""
        self._table.caption = f"{text} ..."

    def refreshed(self, result: RefreshResult) -> None:
        """A stream table was refreshed, and is equal to what its query gives."""
        inserted, deleted, ms = f"+{result.rows_inserted}", f"-{result.rows_deleted}", f"{result.duration_ms:.0f}"
        jobs = "?" if result.spark_jobs is None else str(result.spark_jobs)
        self._table.caption = None
        if self._console.is_terminal:
            self._table.add_row(result.name, result.action, inserted, deleted, ms, jobs, result.reason, TICK)
        else:
            self.say(
                f"  {result.name}: {result.action}, {inserted} {deleted} rows, {ms} ms, {jobs} jobs, "
                f"{result.reason} {TICK}"
            )


def _empty_table() -> Table:
    table = Table(caption_justify="left")
    for heading, width in _COLUMNS.items():
        table.add_column(heading, min_width=width, justify="right" if heading in _NUMBERS else "left")
    return table
