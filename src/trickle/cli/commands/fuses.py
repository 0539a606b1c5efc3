"""Commands about fuses: status, inspect, reset, set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trickle.cli.arguments import Source, TableName
from trickle.cli.command import Group
from trickle.cli.output import print_json, print_line, show, show_rows
from trickle.cli.page import Record
from trickle.cli.session import Session
from trickle.cli.times import when
from trickle.cli.values import to_json
from trickle.cli.working import working
from trickle.errors import InvalidOption

if TYPE_CHECKING:
    from trickle.refresh.fuse import FuseStatusRow
    from trickle.refresh.inspection import FuseInspection, SampleRow

NO_FUSES = "no fuses in use: trickle alter NAME -o fuse=adaptive"


def status(session: Session) -> None:
    """Show all fuses that are in use."""
    with session.connect() as t:
        rows = t.fuse_status()
    show_rows(session, rows, _brief, empty=NO_FUSES)


def _brief(row: FuseStatusRow) -> dict[str, object]:
    return {
        "name": row.name,
        "mode": row.mode,
        "state": row.state,
        "since": when(row.blown_at),
        "ceiling": row.ceiling,
        "insertions": _usual(row.insertions_mean, row.insertions_stddev),
        "deletions": _usual(row.deletions_mean, row.deletions_stddev),
        "last delta": row.last_delta,
        "reason": row.blow_reason,
    }


def _usual(mean: float | None, sigma: float | None) -> str | None:
    return None if mean is None or sigma is None else f"{mean:.0f} ± {sigma:.0f}"


def inspect(
    session: Session,
    name: TableName,
    sample: Annotated[int, typer.Option("--sample", "-n", min=0, help="Rows to show.")] = 20,
) -> None:
    """Show what the changes that wait would do, without applying them."""
    with session.connect() as t, working(t.warehouse.engine, f"inspecting {name}"):
        found = t.inspect_fuse(name, sample=sample)
    if session.as_json:
        print_json(to_json(found))
        return
    print_line("\n".join(_told(found)))
    show_rows(session, found.sample, _brief_sample, empty="no row would come or go")


def _told(found: FuseInspection) -> list[str]:
    lines = [f"{found.name}: {found.state}" + (f", {found.blow_reason}" if found.blow_reason else "")]
    lines += [
        f"waits at {source}: {volume.inserted} insertions, {volume.deleted} deletions"
        for source, volume in found.waiting.items()
    ]
    lines.append(f"would insert {found.inserted} rows and delete {found.deleted}; it has {found.rows_before} now")
    lines += [f"reaches: {', '.join(found.downstream)}"] if found.downstream else []
    return lines


def _brief_sample(row: SampleRow) -> dict[str, object]:
    return {"operation": row.operation, "row": row.row}


def reset(
    session: Session,
    name: TableName,
    action: Annotated[
        str | None,
        typer.Option(help="apply: let the changes through; reinitialize: compute anew; skip_changes: leave them out."),
    ] = None,
) -> None:
    """Put a blown fuse back, and say what becomes of the changes that wait."""
    if action is None:
        raise InvalidOption(
            f"what is to become of the changes that wait for {name}?",
            detail="apply: let them through; reinitialize: compute the table anew from its sources; "
            "skip_changes: go on after them, without them",
            hint=f"trickle fuse reset {name} --action apply (or reinitialize, or skip_changes)",
        )
    with session.connect() as t:
        row = t.reset_fuse(name, action)
    show(session, Record(vars(row), f"fuse of {row.name} is {row.state} again: {row.last_reset_action}"))


def put(
    session: Session,
    name: Source,
    mode: Annotated[str, typer.Argument(help="fixed, adaptive, or none to take it away.")],
    *,
    ceiling: Annotated[int | None, typer.Option(help="Changed rows that are too many.")] = None,
    max_ratio: Annotated[float | None, typer.Option(help="Share of rows, 0 to 1, that is too many.")] = None,
    sensitivity: Annotated[float | None, typer.Option(help="Standard deviations that are too many.")] = None,
    window_size: Annotated[int | None, typer.Option(help="Refreshes that the baseline comes from.")] = None,
    baseline: Annotated[str | None, typer.Option(help="window or ewma.")] = None,
) -> None:
    """Give a source a fuse, which guards everything that reads it."""
    with session.connect() as t:
        row = t.set_source_fuse(
            name,
            mode,
            fuse_ceiling=ceiling,
            fuse_max_ratio=max_ratio,
            fuse_sensitivity=sensitivity,
            fuse_window_size=window_size,
            fuse_baseline=baseline,
        )
    show(session, Record(vars(row), f"fuse of {row.name}: {row.mode}, {row.state}"))


FUSE = Group(
    "fuse",
    "Fuses: see them, look at what blew one, put it back.",
    {"status": status, "inspect": inspect, "reset": reset, "set": put},
)
