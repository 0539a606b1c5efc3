"""The scheduler on a terminal: its log on stderr, and what it is doing on the last line."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trickle.api import Trickle
from trickle.cli.failures import DEBUG_VARIABLE
from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.carrying import FAILED
from trickle.scheduler.loop import Progress, run
from trickle.warehouse import Warehouse

__all__ = ["FAILED", "keep", "one_tick"]

_SILENT = logging.CRITICAL + 1
_FORMAT = "%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"


def keep(warehouse: Warehouse, *, quiet: bool) -> None:
    """Be the scheduler until stopped."""
    with _display() as progress, _logging(logging.WARNING if quiet else logging.INFO):
        run(warehouse, show=progress)


def one_tick(t: Trickle) -> list[RefreshResult]:
    """One tick."""
    # What failed is among the results; a trace is for those who ask for it.
    with _logging(logging.ERROR if os.environ.get(DEBUG_VARIABLE) else _SILENT):
        return t.tick()


@contextmanager
def _logging(level: int) -> Iterator[None]:
    """Inside the block, Trickle logs to stderr as it is then: a display puts lines above its own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    ours = logging.getLogger("trickle")
    before = ours.level, ours.propagate
    ours.addHandler(handler)
    ours.setLevel(level)
    ours.propagate = False
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before[0])
        ours.propagate = before[1]


@contextmanager
def _display() -> Iterator[Callable[[Progress], None]]:
    """What is being done, on the last line of a terminal; nothing where there is none."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda progress: status.update(line(progress))


def line(progress: Progress) -> str:
    """What the scheduler is doing, in words.

    >>> line(Progress(True, 3, ("totals",), 2))
    '3 stream tables: refreshing totals, 2 waiting'
    """
    if not progress.leads:
        return "standing by: another scheduler leads"
    doing = f"refreshing {', '.join(progress.running)}" if progress.running else "nothing to do"
    waiting = f", {progress.waiting} waiting" if progress.waiting else ""
    return f"{progress.stream_tables} stream tables: {doing}{waiting}"
