"""The rows of the system views: small frozen dataclasses, read from the catalog without a Spark job."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from trickle.catalog import alerts as catalog_alerts
from trickle.catalog import databases, fuses, history, hosted, relations, streams
from trickle.catalog.records import FuseState, StreamTable
from trickle.settings import describe, spell
from trickle.tables.hosted import shown_home
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class TableRow:
    """A relation of any kind."""

    name: str
    kind: str
    location: str | None
    primary_key: str | None
    comment: str | None
    created_at: datetime


@dataclass(frozen=True)
class StreamTableRow:
    """A stream table and how it stands."""

    name: str
    status: str
    refresh_mode: str
    effective_refresh_mode: str | None
    schedule: str
    populated: bool
    version: int | None
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    consecutive_errors: int
    last_error: str | None
    needs_reinitialize: bool
    query: str
    location: str | None
    options: str
    fuse_state: str | None
    """ARMED or BLOWN; None without a fuse."""
    held_back: str | None
    """The gate that holds its refresh back, and why."""


@dataclass(frozen=True)
class DependencyRow:
    """What a view or stream table reads."""

    name: str
    source: str
    source_kind: str
    direct: bool
    columns: str | None


@dataclass(frozen=True)
class HistoryRow:
    """One refresh."""

    id: int
    name: str
    action: str
    status: str
    initiated_by: str
    started_at: datetime
    ended_at: datetime | None
    duration_ms: float | None
    rows_inserted: int | None
    rows_deleted: int | None
    version_before: int | None
    version_after: int | None
    reason: str | None
    error_code: str | None
    error_message: str | None
    details: str


@dataclass(frozen=True)
class AlertRow:
    """Something that an operator should know."""

    id: int
    event: str
    severity: str
    name: str | None
    payload: str
    created_at: datetime


@dataclass(frozen=True)
class SettingRow:
    """A setting with its value in force."""

    name: str
    value: str
    default: str
    meaning: str


def tables(warehouse: Warehouse) -> list[TableRow]:
    """All relations, by name."""
    with warehouse.catalog.read() as tx:
        found = relations.listing(tx)
    return [
        TableRow(
            str(r.name),
            r.kind.value,
            warehouse.location_of(r).uri if r.location else None,
            ", ".join(r.key) or None,
            r.comment,
            r.created_at,
        )
        for r in found
    ]


def stream_tables(warehouse: Warehouse) -> list[StreamTableRow]:
    """All stream tables, by name."""
    with warehouse.catalog.read() as tx:
        found = streams.listing(tx)
        homes = {home.relation_id: home for home in hosted.listing(tx)}
        known = {database.id: database for database in databases.listing(tx)} if homes else {}
        blown = {fuse.relation_id for fuse in fuses.listing(tx, state=FuseState.BLOWN)}
        last = history.last_skips(tx)
        default_fuse = warehouse.settings(tx).fuse_default
    return [
        StreamTableRow(
            name=str(s.relation.name),
            status=s.status.value,
            refresh_mode=s.refresh_mode.value,
            effective_refresh_mode=s.effective_mode,
            schedule=s.schedule,
            populated=s.populated,
            version=s.version,
            data_timestamp=s.data_timestamp,
            last_refresh_at=s.last_refresh_at,
            consecutive_errors=s.consecutive_errors,
            last_error=s.last_error,
            needs_reinitialize=s.needs_reinitialize,
            query=s.query,
            location=(
                shown_home(known[homes[s.relation.id].database_id], homes[s.relation.id])
                if s.relation.id in homes
                else warehouse.location_of(s.relation).uri
            ),
            options=json.dumps(dict(s.options), sort_keys=True),
            fuse_state=_fuse_state(s, blown, default_fuse),
            held_back=_held_back(s, last.get(s.relation.id)),
        )
        for s in found
    ]


def _fuse_state(stream: StreamTable, blown: Collection[int], default: str) -> str | None:
    if stream.relation.id in blown:
        return FuseState.BLOWN.value
    return None if stream.options.get("fuse", default) == "none" else FuseState.ARMED.value


def _held_back(stream: StreamTable, skipped: tuple[datetime, str] | None) -> str | None:
    if skipped is None:
        return None
    at, reason = skipped
    # What waited may have gone away by itself: then the table was found to be fresh since, without a history row.
    return None if stream.last_refresh_at is not None and stream.last_refresh_at > at else reason


def dependencies(warehouse: Warehouse) -> list[DependencyRow]:
    """Who reads what, views included."""
    with warehouse.catalog.read() as tx:
        names = {r.id: str(r.name) for r in relations.listing(tx)}
        found = relations.all_dependencies(tx)
    return sorted(
        (
            DependencyRow(
                names[d.relation_id],
                names[d.source_id],
                d.source_kind.value,
                d.direct,
                ", ".join(d.columns) or None,
            )
            for d in found
        ),
        key=lambda row: (row.name, row.source),
    )


def refresh_history(warehouse: Warehouse, relation_id: int | None = None, limit: int = 1000) -> list[HistoryRow]:
    """Refreshes, newest first."""
    with warehouse.catalog.read() as tx:
        found = history.recent(tx, relation_id, limit)
    return [
        HistoryRow(
            id=r.id,
            name=r.name,
            action=r.action.value,
            status=r.status.value,
            initiated_by=r.initiated_by.value,
            started_at=r.started_at,
            ended_at=r.ended_at,
            duration_ms=r.duration_ms,
            rows_inserted=r.rows_inserted,
            rows_deleted=r.rows_deleted,
            version_before=r.version_before,
            version_after=r.version_after,
            reason=r.reason,
            error_code=r.error_code,
            error_message=r.error_message,
            details=json.dumps(dict(r.details), sort_keys=True),
        )
        for r in found
    ]


def alerts(warehouse: Warehouse, limit: int = 1000) -> list[AlertRow]:
    """Alerts, newest first."""
    with warehouse.catalog.read() as tx:
        names = {r.id: str(r.name) for r in relations.listing(tx)}
        found = catalog_alerts.recent(tx, limit=limit)
    return [
        AlertRow(
            a.id,
            a.event,
            a.severity.value,
            names.get(a.relation_id) if a.relation_id is not None else None,
            json.dumps(dict(a.payload), sort_keys=True),
            a.created_at,
        )
        for a in found
    ]


def settings(warehouse: Warehouse) -> list[SettingRow]:
    """All settings with the values in force."""
    with warehouse.catalog.read() as tx:
        values = asdict(warehouse.settings(tx))
    return [SettingRow(name, spell(values[name]), default, text) for name, _, default, text in describe()]
