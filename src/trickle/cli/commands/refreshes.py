"""Commands about refreshes: refresh, status, history, alerts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.names import stream_table
from trickle.cli.output import show_rows
from trickle.cli.session import Session
from trickle.cli.times import when
from trickle.errors import InvalidOption

if TYPE_CHECKING:
    from trickle.cli.refreshing import Outcome
    from trickle.tables.views import AlertRow, HistoryRow, StreamTableRow

MaybeStream = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Only this stream table.", autocompletion=stream_table)
]
RecentLimit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, the newest first.")]
NO_STREAM_TABLES = 'no stream tables yet: trickle create NAME "SELECT ..."'


def refresh(
    session: Session,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Stream tables.", autocompletion=stream_table)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are not suspended.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compute also where no source has changed, and pass gates.")
    ] = False,
) -> None:
    """Bring stream tables to the present, each after those it reads."""
    from trickle.cli.refreshing import refresh_in_order

    if bool(names) == everything:
        raise InvalidOption("which stream tables?", hint="trickle refresh NAME ..., or trickle refresh --all")
    with session.connect() as t:
        outcomes, failed = refresh_in_order(t, names, force=force)
    show_rows(session, outcomes, _brief_outcome, empty=NO_STREAM_TABLES)
    if failed is not None:
        raise failed


def _brief_outcome(row: Outcome) -> dict[str, object]:
    return {
        "name": row.name,
        "action": row.action,
        "inserted": row.rows_inserted,
        "deleted": row.rows_deleted,
        "ms": None if row.duration_ms is None else round(row.duration_ms),
        "jobs": row.spark_jobs,
        "reason": row.reason,
    }


def status(session: Session) -> None:
    """Show every stream table and how it stands."""
    with session.connect() as t:
        rows = t.status()
    show_rows(session, rows, _brief_status, empty=NO_STREAM_TABLES)


def _brief_status(row: StreamTableRow) -> dict[str, object]:
    return {
        "name": row.name,
        "status": row.status,
        "mode": row.effective_refresh_mode or row.refresh_mode,
        "schedule": row.schedule,
        "version": row.version,
        "refreshed": when(row.last_refresh_at),
        "fuse": row.fuse_state,
        "held back": row.held_back,
        "errors": row.consecutive_errors,
        "last error": row.last_error or "",
    }


def history(session: Session, name: MaybeStream = None, limit: RecentLimit = 20) -> None:
    """Show past refreshes, the newest first."""
    with session.connect() as t:
        rows = t.refresh_history(name, limit=limit)
    show_rows(session, rows, _brief_history, empty="no refreshes yet")


def _brief_history(row: HistoryRow) -> dict[str, object]:
    return {
        "started": when(row.started_at),
        "name": row.name,
        "action": row.action,
        "status": row.status,
        "by": row.initiated_by,
        "inserted": row.rows_inserted,
        "deleted": row.rows_deleted,
        "ms": None if row.duration_ms is None else round(row.duration_ms),
        "jobs": json.loads(row.details).get("spark_jobs"),
        "reason": row.error_message or row.reason or "",
    }


def alerts(session: Session, limit: RecentLimit = 20) -> None:
    """Show what an operator should know, the newest first."""
    with session.connect() as t:
        rows = t.alerts(limit=limit)
    show_rows(session, rows, _brief_alert, empty="no alerts")


def _brief_alert(row: AlertRow) -> dict[str, object]:
    return {
        "at": when(row.created_at),
        "severity": row.severity,
        "event": row.event,
        "name": row.name,
        "payload": row.payload,
    }
