"""What the demo shows: a table that grows on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from trickle import RefreshResult

TICK = "✓"


class Screen:
    """Tells the story of the demo."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._table = Table(title="refreshes", title_justify="left")
        for heading in ("stream table", "action", "+ rows", "- rows", "ms", "jobs", "reason", "equal to its query"):
            self._table.add_column(
                heading, justify="right" if heading in ("+ rows", "- rows", "ms", "jobs") else "left"
            )
        self._live = Live(self._table, console=console, refresh_per_second=8)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """A line of the story; on a terminal it stands above the table."""
        self._console.print(f"[{self.seconds:5.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    def chapter(self, title: str) -> None:
        """A batch begins."""
        self.say(title)
        self._table.add_section()
        self._table.add_row(f"[bold]{title}[/bold]")

    def refreshed(self, result: RefreshResult) -> None:
        """A stream table was refreshed and compared with its query."""
        jobs = "-" if result.spark_jobs is None else str(result.spark_jobs)
        inserted, deleted, ms = f"+{result.rows_inserted}", f"-{result.rows_deleted}", f"{result.duration_ms:.0f}"
        if self._console.is_terminal:
            self._table.add_row(result.name, result.action, inserted, deleted, ms, jobs, result.reason, TICK)
        else:
            self.say(
                f"  {result.name}: {result.action}, {inserted} {deleted} rows, {ms} ms, {jobs} jobs, "
                f"{result.reason} {TICK}"
            )
