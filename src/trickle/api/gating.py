"""The part of the public interface that holds refreshes back, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from trickle.errors import InvalidOption
from trickle.refresh import fuse as _fuse
from trickle.refresh import inspection, loads, usergates
from trickle.refresh.fuse import FuseStatusRow
from trickle.refresh.inspection import FuseInspection
from trickle.refresh.loads import (
    BootstrapRow,
    SourceGateRow,
    WatermarkGroupRow,
    WatermarkRow,
    WatermarkStatusRow,
)
from trickle.refresh.usergates import GateFunction, UserGateRow
from trickle.sql import names
from trickle.warehouse import Warehouse

PROCEDURES = (
    "advance_watermark",
    "bootstrap_gate_status",
    "create_watermark_group",
    "drop_gate",
    "drop_watermark_group",
    "fuse_status",
    "gate_source",
    "gates",
    "inspect_fuse",
    "register_gate",
    "reset_fuse",
    "set_source_fuse",
    "source_gates",
    "ungate_source",
    "watermark_groups",
    "watermark_status",
    "watermarks",
)


class Gating:
    """Fuses, source gates, watermarks, gates of one's own."""

    warehouse: Warehouse

    # Fuses

    def fuse_status(self) -> list[FuseStatusRow]:
        """All fuses that are in use, with their baselines."""
        return _fuse.fuse_status(self.warehouse)

    def inspect_fuse(self, name: str, *, sample: int = 20) -> FuseInspection:
        """What the changes that wait would do to a stream table: computed, looked at, and thrown away."""
        return inspection.inspect_fuse(self.warehouse, names.table_name(name), sample)

    def reset_fuse(self, name: str, action: str | None = None) -> FuseStatusRow:
        """Put a blown fuse back, and say what becomes of the changes: apply, reinitialize or skip_changes."""
        table = names.table_name(name)
        _fuse.reset_fuse(self.warehouse, table, action)
        return _fuse.status_of(self.warehouse, table)

    def set_source_fuse(
        self,
        name: str,
        fuse: str,
        *,
        fuse_ceiling: int | None = None,
        fuse_max_ratio: float | None = None,
        fuse_sensitivity: float | None = None,
        fuse_window_size: int | None = None,
        fuse_baseline: str | None = None,
    ) -> FuseStatusRow:
        """Give a source a fuse that guards everything that reads it; ``none`` takes it away."""
        table = names.table_name(name)
        options = {
            "fuse": fuse,
            "fuse_ceiling": fuse_ceiling,
            "fuse_max_ratio": fuse_max_ratio,
            "fuse_sensitivity": fuse_sensitivity,
            "fuse_window_size": fuse_window_size,
            "fuse_baseline": fuse_baseline,
        }
        _fuse.set_source_fuse(self.warehouse, table, options)
        return _fuse.status_of(self.warehouse, table)

    # Loads

    def gate_source(self, name: str, *, by: str | None = None, reason: str | None = None) -> SourceGateRow:
        """Hold back everything that reads a source while it is being loaded."""
        return loads.gate_source(self.warehouse, names.table_name(name), by, reason)

    def ungate_source(self, name: str) -> SourceGateRow:
        """The load is done: one clean refresh follows."""
        return loads.ungate_source(self.warehouse, names.table_name(name))

    def source_gates(self) -> list[SourceGateRow]:
        """Sources that are or were gated."""
        return loads.listed_gates(self.warehouse)

    def bootstrap_gate_status(self) -> list[BootstrapRow]:
        """Sources that are being loaded, and who waits for them."""
        return loads.bootstrap_gate_status(self.warehouse)

    def advance_watermark(self, source: str, watermark: datetime | str, *, by: str | None = None) -> WatermarkRow:
        """Say that a source is complete up to a time; never goes back."""
        return loads.advance_watermark(self.warehouse, names.table_name(source), _time(watermark), by)

    def create_watermark_group(
        self,
        name: str,
        sources: Sequence[str] | str,
        *,
        tolerance: str | float | timedelta = 0.0,
        mode: str = "gate",
    ) -> WatermarkGroupRow:
        """Sources that are to be complete together, within a tolerance."""
        listed = sources.split(",") if isinstance(sources, str) else sources
        tables = [names.table_name(source.strip()) for source in listed]
        return loads.create_watermark_group(self.warehouse, name, tables, tolerance, mode)

    def drop_watermark_group(self, name: str) -> None:
        """The sources no longer wait for each other."""
        loads.drop_watermark_group(self.warehouse, name)

    def watermarks(self) -> list[WatermarkRow]:
        """How far sources are complete."""
        return loads.listed_watermarks(self.warehouse)

    def watermark_groups(self) -> list[WatermarkGroupRow]:
        """Sources that are to be complete together."""
        return loads.listed_groups(self.warehouse)

    def watermark_status(self) -> list[WatermarkStatusRow]:
        """Whether each group is aligned."""
        return loads.watermark_status(self.warehouse)

    # Gates of one's own

    def register_gate(
        self,
        name: str,
        gate: str | GateFunction,
        *,
        tables: Sequence[str] | str | None = None,
        by: str | None = None,
    ) -> None:
        """Make a SQL predicate or a Python function a gate over staged changes, of some stream tables or of all."""
        listed = [table.strip() for table in tables.split(",")] if isinstance(tables, str) else tables
        usergates.register(self.warehouse, name, gate, listed, by)

    def drop_gate(self, name: str) -> None:
        """Forget a gate."""
        usergates.unregister(self.warehouse, name)

    def gates(self) -> list[UserGateRow]:
        """The gates that were registered."""
        return usergates.listed(self.warehouse)


def _time(given: datetime | str) -> datetime:
    if isinstance(given, datetime):
        return given
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InvalidOption(
            f"not a time: {given!r}", hint="an ISO time with its zone: 2026-01-31T00:00:00+00:00"
        ) from None
