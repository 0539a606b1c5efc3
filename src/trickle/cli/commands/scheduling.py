"""Commands of the scheduler: run, tick, pause, drain."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.output import show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session

if TYPE_CHECKING:
    from trickle.refresh.outcome import RefreshResult
    from trickle.scheduler.control import SchedulerRow
    from trickle.scheduler.loop import Progress

NOTHING = "nothing was due, or nothing has changed"


def run(
    session: Session,
    once: Annotated[bool, typer.Option("--once", help="One tick, then end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")] = False,
) -> None:
    """Keep all stream tables fresh until stopped (Ctrl-C or SIGTERM: what is running ends first)."""
    from trickle.scheduler.loop import run as keep  # noqa: PLC0415 - imports PySpark, which --help and TAB must not wait for

    _log_to_stderr(logging.WARNING if quiet else logging.INFO)
    with session.connect() as t, _display() as progress:
        keep(t.warehouse, once=once, show=progress)


def tick(session: Session) -> None:
    """Refresh what is due, once, and show what became of it."""
    from trickle.scheduler.run import tick as one_tick  # noqa: PLC0415 - as above

    with session.connect() as t:
        results = one_tick(t.warehouse)
    show_rows(session, results, _brief, empty=NOTHING)


def pause(session: Session, reason: Annotated[str | None, typer.Option(help="Why.")] = None) -> None:
    """Have schedulers begin no refresh until they are told to go on."""
    from trickle.scheduler.control import pause_all  # noqa: PLC0415 - as above

    with session.connect() as t:
        _show_state(session, pause_all(t.warehouse, reason))


def drain(
    session: Session,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for what is running.")] = None,
) -> None:
    """Have schedulers end what they began and begin nothing more, and wait for that."""
    from trickle.scheduler.control import drain as drained  # noqa: PLC0415 - as above

    with session.connect() as t:
        _show_state(session, drained(t.warehouse, timeout))


def unpause(session: Session) -> None:
    """Let schedulers go on after pause or drain."""
    from trickle.scheduler.control import resume_all  # noqa: PLC0415 - as above

    with session.connect() as t:
        _show_state(session, resume_all(t.warehouse))


def scheduler(session: Session) -> None:
    """Show whether a scheduler keeps the warehouse, and what it was told."""
    from trickle.scheduler.control import scheduler_status  # noqa: PLC0415 - as above

    with session.connect() as t:
        _show_state(session, scheduler_status(t.warehouse))


def _show_state(session: Session, row: SchedulerRow) -> None:
    leader = f", led by {row.leader}" if row.leader else ""
    paused = f", paused by {row.paused_by}" + (f": {row.pause_reason}" if row.pause_reason else "")
    jobs = f", {row.jobs_running} running, {row.jobs_queued} queued"
    show(session, Record(vars(row), f"scheduler {row.state}{leader}{paused if row.paused_by else ''}{jobs}"))


def _brief(row: RefreshResult) -> dict[str, object]:
    return {
        "name": row.name,
        "action": row.action,
        "inserted": row.rows_inserted,
        "deleted": row.rows_deleted,
        "ms": round(row.duration_ms),
        "reason": row.reason,
    }


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"))
    ours = logging.getLogger("trickle")
    ours.addHandler(handler)
    ours.setLevel(level)


@contextmanager
def _display() -> Iterator[Callable[[Progress], None]]:
    """What is being done, on the last line of a terminal; nothing where there is none."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - not needed where there is no terminal

    with Console(stderr=True).status("starting") as status:
        yield lambda progress: status.update(_line(progress))


def _line(progress: Progress) -> str:
    if not progress.leads:
        return "standing by: another scheduler leads"
    now = ", ".join(progress.running) or "nothing to do"
    waiting = f", {progress.waiting} waiting" if progress.waiting else ""
    return f"{progress.stream_tables} stream tables: {now}{waiting}"
