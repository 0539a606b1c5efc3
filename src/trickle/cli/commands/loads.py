"""Commands that loaders use: gates of sources, watermarks, and groups of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.arguments import By, Source, user
from trickle.cli.command import Group
from trickle.cli.names import any_table
from trickle.cli.output import show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.times import when

if TYPE_CHECKING:
    from trickle.refresh.loads import SourceGateRow, WatermarkGroupRow, WatermarkRow, WatermarkStatusRow

NO_GROUPS = "no groups of sources: trickle watermark create-group NAME SOURCE..."
GroupName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]


def gate(
    session: Session,
    name: Source,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    by: By = None,
) -> None:
    """Hold back everything that reads a source while it is loaded."""
    with session.connect() as t:
        row = t.gate_source(name, by=user(by), reason=reason)
    show(session, Record(vars(row), f"source {row.source} is gated by {row.gated_by}"))


def ungate(session: Session, name: Source) -> None:
    """The load is done: let the readers of a source go on."""
    with session.connect() as t:
        row = t.ungate_source(name)
    show(session, Record(vars(row), f"source {row.source} is not gated"))


def gates(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Only this one.", autocompletion=any_table)
    ] = None,
) -> None:
    """Show the sources that are or were gated."""
    from trickle.sql.names import table_name

    with session.connect() as t:
        rows = t.source_gates()
    if name is not None:
        rows = [row for row in rows if table_name(row.source) == table_name(name)]
    show_rows(
        session, rows, _brief_gate, empty="no source was ever gated" if name is None else f"{name} was never gated"
    )


def _brief_gate(row: SourceGateRow) -> dict[str, object]:
    return {
        "source": row.source,
        "gated": row.gated,
        "since": when(row.gated_at),
        "until": when(row.ungated_at),
        "by": row.gated_by,
        "reason": row.reason,
    }


def advance(
    session: Session,
    source: Source,
    time: Annotated[str, typer.Argument(help="ISO time with its zone, such as 2026-01-31T00:00:00Z.")],
    by: By = None,
) -> None:
    """Say that a source is complete up to a time. It never goes back."""
    with session.connect() as t:
        row = t.advance_watermark(source, time, by=user(by))
    show(session, Record(vars(row), f"{row.source} is complete up to {row.watermark.isoformat()}"))


def watermarks(session: Session) -> None:
    """Show how far sources are complete."""
    with session.connect() as t:
        rows = t.watermarks()
    show_rows(session, rows, _brief_watermark, empty="no watermarks yet: trickle watermark advance SOURCE TIME")


def _brief_watermark(row: WatermarkRow) -> dict[str, object]:
    return {
        "source": row.source,
        "watermark": when(row.watermark),
        "position": row.position,
        "advanced": when(row.updated_at),
        "by": row.advanced_by,
    }


def status(session: Session) -> None:
    """Show whether each group of sources is complete together."""
    with session.connect() as t:
        rows = t.watermark_status()
    show_rows(session, rows, _brief_status, empty=NO_GROUPS)


def _brief_status(row: WatermarkStatusRow) -> dict[str, object]:
    return {
        "group": row.group_name,
        "mode": row.mode,
        "aligned": row.aligned,
        "complete up to": when(row.effective_watermark),
        "lag s": row.lag_seconds,
        "watermarks": f"{row.sources_with_watermark} of {row.sources_total}",
        "reason": row.reason,
    }


def groups(session: Session) -> None:
    """Show the groups of sources."""
    with session.connect() as t:
        rows = t.watermark_groups()
    show_rows(session, rows, _brief_group, empty=NO_GROUPS)


def _brief_group(row: WatermarkGroupRow) -> dict[str, object]:
    return {"name": row.name, "sources": row.sources, "tolerance s": row.tolerance_seconds, "mode": row.mode}


def create_group(
    session: Session,
    name: GroupName,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Its tables.", autocompletion=any_table)],
    tolerance: Annotated[str, typer.Option(help="How far apart they may be: 30s, 1h30m.")] = "0s",
    mode: Annotated[str, typer.Option(help="gate: wait for each other; hold_back: read what is complete.")] = "gate",
) -> None:
    """Have sources be complete together."""
    with session.connect() as t:
        row = t.create_watermark_group(name, sources, tolerance=tolerance, mode=mode)
    show(session, Record(vars(row), f"watermark group {row.name} created: {row.sources}, mode {row.mode}"))


def drop_group(session: Session, name: GroupName) -> None:
    """Have sources no longer wait for each other."""
    with session.connect() as t:
        t.drop_watermark_group(name)
    show(session, Record({"message": f"dropped {name}"}, f"dropped watermark group {name}"))


SOURCE = Group(
    "source",
    "Sources that are being loaded: hold back their readers, and let them go on.",
    {"gate": gate, "ungate": ungate, "status": gates},
)
WATERMARK = Group(
    "watermark",
    "How far sources are complete, and which are to be complete together.",
    {
        "advance": advance,
        "list": watermarks,
        "status": status,
        "groups": groups,
        "create-group": create_group,
        "drop-group": drop_group,
    },
)
