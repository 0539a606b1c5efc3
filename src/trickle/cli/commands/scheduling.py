"""Commands of the scheduler: run, tick, why, jobs, dag; what it is told, and which stream tables go together."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from trickle.cli.arguments import By, StreamName, user
from trickle.cli.command import Group
from trickle.cli.failures import RefreshesFailed
from trickle.cli.names import stream_table
from trickle.cli.output import print_json, print_line, show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.times import when
from trickle.cli.values import to_json
from trickle.cli.working import working

if TYPE_CHECKING:
    from trickle.refresh.outcome import RefreshResult
    from trickle.scheduler.control import JobRow, RefreshGroupRow, SchedulerRow, WorkerPoolRow

NOTHING = "nothing was due, or nothing has changed"
GroupName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]


def run(
    session: Session,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")] = False,
) -> None:
    """Keep all stream tables fresh until stopped (Ctrl-C or SIGTERM: what is running ends first)."""
    from trickle.cli.keeping import keep

    with session.connect() as t:
        keep(t.warehouse, quiet=quiet)


def tick(session: Session) -> None:
    """Refresh what is due, once, and show what became of it; fails when a refresh failed."""
    from trickle.cli.keeping import FAILED, one_tick

    with session.connect() as t, working(t.warehouse.engine, "refreshing what is due"):
        results = one_tick(t)
    show_rows(session, results, _brief_result, empty=NOTHING)
    failed = {row.name: row.reason for row in results if row.action == FAILED}
    if failed:
        raise RefreshesFailed(failed, len(results))


def _brief_result(row: RefreshResult) -> dict[str, object]:
    return {
        "name": row.name,
        "action": row.action,
        "inserted": row.rows_inserted,
        "deleted": row.rows_deleted,
        "ms": round(row.duration_ms),
        "reason": row.reason,
    }


def why(session: Session, name: StreamName) -> None:
    """Tell what every gate says of a stream table now, and what became of its last refresh."""
    with session.connect() as t, working(t.warehouse.engine, f"asking the gates of {name}"):
        lines = t.why_not_refreshed(name)
    if session.as_json:
        print_json(lines)
    else:
        print_line("\n".join(lines))


def jobs(
    session: Session, limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")] = 20
) -> None:
    """Show what was handed to workers, the newest first."""
    with session.connect() as t:
        rows = t.parallel_job_status(limit=limit)
    show_rows(session, rows, _brief_job, empty="no jobs yet: trickle run, or trickle tick")


def _brief_job(row: JobRow) -> dict[str, object]:
    return {
        "id": row.id,
        "members": row.members,
        "kind": row.kind.replace("_", " ").lower(),
        "status": row.status,
        "enqueued": when(row.enqueued_at),
        "waited ms": _rounded(row.wait_ms),
        "ms": _rounded(row.duration_ms),
        "worker": row.worker,
        "error": row.error_message,
    }


def _rounded(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


class Drawing(StrEnum):
    """How a graph is drawn."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"


def dag(
    session: Session,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Of a tree: only this stream table.", autocompletion=stream_table),
    ] = None,
    form: Annotated[Drawing, typer.Option("--format", help="tree, mermaid or dot (Graphviz).")] = Drawing.TREE,
) -> None:
    """Draw what stream tables are computed from."""
    with session.connect() as t:
        match form:
            case Drawing.TREE:
                rows = t.dependency_tree(name)
            case Drawing.MERMAID | Drawing.DOT:
                text = t.explain_dag(form.value)
                show(session, Record({"format": form.value, "text": text}, text.rstrip()))
                return
            case _:
                assert_never(form)
    if session.as_json:
        print_json([to_json(row) for row in rows])
    else:
        print_line("\n".join(row.line for row in rows) or "no stream tables yet")


def status(session: Session) -> None:
    """Show whether a scheduler keeps the warehouse, what it was told, and its workers."""
    with session.connect() as t:
        row, pool = t.scheduler_status(), t.worker_pool_status()
    _show_state(session, row, pool)


def pause(session: Session, reason: Annotated[str | None, typer.Option(help="Why.")] = None, by: By = None) -> None:
    """Have schedulers begin no refresh until they are told to go on."""
    with session.connect() as t:
        row, pool = t.pause_all(reason=reason, by=user(by)), t.worker_pool_status()
    _show_state(session, row, pool)


def resume(session: Session) -> None:
    """Let schedulers go on after pause or drain."""
    with session.connect() as t:
        row, pool = t.resume_all(), t.worker_pool_status()
    _show_state(session, row, pool)


def drain(
    session: Session,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for what is running.")] = None,
    by: By = None,
) -> None:
    """Have schedulers end what they began and begin nothing more, and wait for that."""
    with session.connect() as t:
        row, pool = t.drain(timeout=timeout, by=user(by)), t.worker_pool_status()
    _show_state(session, row, pool)


def _show_state(session: Session, row: SchedulerRow, pool: WorkerPoolRow) -> None:
    leader = f", led by {row.leader}" if row.leader else ""
    told = ""
    if row.paused_by:
        told = f", paused by {row.paused_by}" + (f": {row.pause_reason}" if row.pause_reason else "")
    if row.draining_by:
        told += f", drained by {row.draining_by}"
    units = f"{row.jobs_running} running, {row.jobs_queued} queued, {pool.idle} of {pool.workers} workers idle"
    show(session, Record({**vars(row), "workers": asdict(pool)}, f"scheduler {row.state}{leader}{told}: {units}"))


def create(
    session: Session,
    name: GroupName,
    members: Annotated[
        list[str], typer.Argument(metavar="MEMBER...", help="Its stream tables.", autocompletion=stream_table)
    ],
    isolation: Annotated[str, typer.Option(help="READ_COMMITTED or REPEATABLE_READ.")] = "READ_COMMITTED",
) -> None:
    """Have stream tables be refreshed and committed together."""
    with session.connect() as t:
        row = t.create_refresh_group(name, members, isolation=isolation)
    show(session, Record(vars(row), f"refresh group {row.name} created: {row.members}, {row.isolation}"))


def drop(session: Session, name: GroupName) -> None:
    """Have them be refreshed on their own again."""
    with session.connect() as t:
        t.drop_refresh_group(name)
    show(session, Record({"message": f"dropped {name}"}, f"dropped refresh group {name}"))


def groups(session: Session) -> None:
    """Show all declared groups."""
    with session.connect() as t:
        rows = t.refresh_groups()
    show_rows(session, rows, _brief_group, empty="no groups yet: trickle group create NAME MEMBER...")


def _brief_group(row: RefreshGroupRow) -> dict[str, object]:
    return {"name": row.name, "members": row.members, "isolation": row.isolation, "created": when(row.created_at)}


SCHEDULER = Group(
    "scheduler",
    "How schedulers stand, and what they are told.",
    {"status": status, "pause": pause, "resume": resume, "drain": drain},
)
GROUP = Group(
    "group",
    "Stream tables that are refreshed and committed together.",
    {"create": create, "drop": drop, "list": groups},
)
