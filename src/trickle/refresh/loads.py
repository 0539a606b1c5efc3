"""What loaders say about the sources: being loaded, complete up to a time, to be complete together.

A source gate holds back everything that reads a source while it is loaded. A watermark says up to which time a source
is complete; a group of sources is aligned when their watermarks lie within its tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trickle.algebra.names import TableName
from trickle.catalog import pins, source_gates
from trickle.catalog import watermarks as stored
from trickle.catalog.records import SourceGate, WatermarkGroupRecord, WatermarkRecord
from trickle.errors import InvalidOption
from trickle.gates.watermark import alignment
from trickle.refresh.board import Board
from trickle.settings import parse_duration
from trickle.sources.lake import current
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class SourceGateRow:
    """A source that is, or was, being loaded."""

    source: str
    gated: bool
    gated_at: datetime | None
    ungated_at: datetime | None
    gated_by: str | None
    reason: str | None


@dataclass(frozen=True)
class BootstrapRow:
    """A source that is being loaded, and who waits for it."""

    source: str
    gated: bool
    gated_at: datetime | None
    gated_by: str | None
    reason: str | None
    waiting: str
    """The stream tables that are held back, further downstream too."""


@dataclass(frozen=True)
class WatermarkRow:
    """How far a source is complete."""

    source: str
    watermark: datetime
    position: str | None
    advanced_by: str | None
    updated_at: datetime


@dataclass(frozen=True)
class WatermarkGroupRow:
    """Sources that are to be complete together."""

    name: str
    sources: str
    tolerance_seconds: float
    mode: str
    created_at: datetime


@dataclass(frozen=True)
class WatermarkStatusRow:
    """How a group of sources stands."""

    group_name: str
    mode: str
    aligned: bool
    reason: str
    min_watermark: datetime | None
    max_watermark: datetime | None
    lag_seconds: float | None
    effective_watermark: datetime | None
    sources_with_watermark: int
    sources_total: int


def gate_source(warehouse: Warehouse, name: TableName, by: str | None, reason: str | None) -> SourceGateRow:
    """Hold back everything that reads a source, until it is ungated; a second time changes nothing."""
    with warehouse.catalog.write() as tx:
        source = stored.base_source(tx, name)
        return _gate_row(source_gates.gate(tx, source.id, by, reason, warehouse.clock.now()))


def ungate_source(warehouse: Warehouse, name: TableName) -> SourceGateRow:
    """Let the readers of a source go on; a second time changes nothing."""
    with warehouse.catalog.write() as tx:
        source = stored.base_source(tx, name)
        source_gates.ungate(tx, source.id, warehouse.clock.now())
        gate = source_gates.find(tx, source.id)
    if gate is None:
        return SourceGateRow(str(source.name), False, None, None, None, None)
    return _gate_row(gate)


def listed_gates(warehouse: Warehouse) -> list[SourceGateRow]:
    """All sources that are or were gated."""
    with warehouse.catalog.read() as tx:
        return [_gate_row(gate) for gate in source_gates.listing(tx)]


def bootstrap_gate_status(warehouse: Warehouse) -> list[BootstrapRow]:
    """The sources that are being loaded, and who waits for each."""
    board = Board(warehouse)
    return [
        BootstrapRow(
            source=str(gate.name),
            gated=gate.gated,
            gated_at=gate.gated_at,
            gated_by=gate.gated_by,
            reason=gate.reason,
            waiting=", ".join(sorted(board.lineage.name(i) for i in board.lineage.downstream(source))),
        )
        for source, gate in sorted(board.gated.items())
    ]


def advance_watermark(warehouse: Warehouse, name: TableName, watermark: datetime, by: str | None) -> WatermarkRow:
    """Say that a source is complete up to a time. Never goes back; the same again changes nothing."""
    if watermark.tzinfo is None:
        raise InvalidOption(
            f"a watermark needs a time zone: {watermark.isoformat()}",
            hint="datetime(..., tzinfo=UTC), or TIMESTAMP '2026-01-31T00:00:00Z' in SQL",
        )
    with warehouse.catalog.read() as tx:
        source = stored.base_source(tx, name)
        pin = pins.find(tx, source.id)
    # Taken before the watermark is stored: what comes after it is not said to be complete.
    position = current(source, warehouse.location_of(source), None if pin is None else pin.version, None)
    with warehouse.catalog.write() as tx:
        return _watermark_row(
            stored.advance(tx, source.id, watermark, position=str(position), by=by, now=warehouse.clock.now())
        )


def create_watermark_group(
    warehouse: Warehouse, name: str, sources: Sequence[TableName], tolerance: str | float | timedelta, mode: str
) -> WatermarkGroupRow:
    """Sources that are to be complete together: ``gate`` waits for it, ``hold_back`` reads what is complete."""
    with warehouse.catalog.write() as tx:
        group = stored.create_group(
            tx, name, sources, tolerance=_duration(tolerance), mode=mode, now=warehouse.clock.now()
        )
    return _group_row(group)


def drop_watermark_group(warehouse: Warehouse, name: str) -> None:
    """The sources no longer wait for each other."""
    with warehouse.catalog.write() as tx:
        stored.drop_group(tx, name)


def listed_watermarks(warehouse: Warehouse) -> list[WatermarkRow]:
    """The watermarks of all sources that have one."""
    with warehouse.catalog.read() as tx:
        return [_watermark_row(one) for one in stored.listing(tx)]


def listed_groups(warehouse: Warehouse) -> list[WatermarkGroupRow]:
    """All watermark groups."""
    with warehouse.catalog.read() as tx:
        return [_group_row(group) for group in stored.groups(tx)]


def watermark_status(warehouse: Warehouse) -> list[WatermarkStatusRow]:
    """Whether each group is aligned, and how far it is complete."""
    board = Board(warehouse)
    rows = []
    for group in board.watermark_groups(set(board.lineage.tables)):
        found = alignment(group)
        known = [member.watermark for member in group.members if member.watermark is not None]
        rows.append(
            WatermarkStatusRow(
                group_name=group.name,
                mode=group.mode,
                aligned=found.aligned,
                reason=found.reason,
                min_watermark=min(known, default=None),
                max_watermark=max(known, default=None),
                lag_seconds=(max(known) - min(known)).total_seconds() if known else None,
                effective_watermark=found.effective,
                sources_with_watermark=len(known),
                sources_total=len(group.members),
            )
        )
    return rows


def _duration(given: str | float | timedelta) -> timedelta:
    if isinstance(given, timedelta):
        return given
    if isinstance(given, str):
        parsed = parse_duration(given)
        if parsed is None:
            raise InvalidOption(f"not a duration: {given!r}", hint="a tolerance such as 30s or 1h30m")
        return parsed
    try:
        return timedelta(seconds=given)
    except (OverflowError, ValueError):
        raise InvalidOption(f"not a duration: {given!r} seconds") from None


def _gate_row(gate: SourceGate) -> SourceGateRow:
    return SourceGateRow(str(gate.name), gate.gated, gate.gated_at, gate.ungated_at, gate.gated_by, gate.reason)


def _watermark_row(one: WatermarkRecord) -> WatermarkRow:
    return WatermarkRow(str(one.name), one.watermark, one.position, one.advanced_by, one.updated_at)


def _group_row(group: WatermarkGroupRecord) -> WatermarkGroupRow:
    return WatermarkGroupRow(
        group.name, ", ".join(map(str, group.sources)), group.tolerance_seconds, group.mode, group.created_at
    )
