"""The refresh history. Rows go with their stream table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from trickle.catalog.models import RefreshRow
from trickle.catalog.records import Action, Initiator, Outcome, RefreshRecord
from trickle.errors import InternalError


def start(
    tx: Session,
    *,
    relation_id: int,
    name: str,
    action: Action,
    initiated_by: Initiator,
    now: datetime,
    version_before: int | None = None,
    reason: str | None = None,
    details: Mapping[str, object] | None = None,
) -> int:
    """Enter a refresh that begins; returns its id."""
    row = _insert(
        tx,
        relation_id=relation_id,
        name=name,
        action=action,
        status=Outcome.RUNNING,
        initiated_by=initiated_by,
        started_at=now,
        rows_inserted=0,
        rows_deleted=0,
        version_before=version_before,
        reason=reason,
        details=dict(details or {}),
    )
    return row.id


def finish(
    tx: Session,
    refresh_id: int,
    *,
    status: Outcome,
    now: datetime,
    action: Action | None = None,
    rows_inserted: int = 0,
    rows_deleted: int = 0,
    version_after: int | None = None,
    duration_ms: float | None = None,
    reason: str | None = None,
    error_code: str | None = None,
    error_message: str | None = None,
    frontier: Mapping[str, str] | None = None,
    details: Mapping[str, object] | None = None,
) -> RefreshRecord | None:
    """Say how a refresh ended. Its duration is the time since its start unless given.

    Action, reason and details stay as they were at the start when not given. None when the row went with its table.
    """
    begun = find(tx, refresh_id)
    if begun is None:
        return None
    statement = (
        update(RefreshRow)
        .where(RefreshRow.id == refresh_id)
        .returning(RefreshRow)
        .values(
            status=status,
            ended_at=now,
            action=action or begun.action,
            rows_inserted=rows_inserted,
            rows_deleted=rows_deleted,
            version_after=version_after,
            duration_ms=_milliseconds(begun.started_at, now) if duration_ms is None else duration_ms,
            reason=begun.reason if reason is None else reason,
            error_code=error_code,
            error_message=error_message,
            frontier=None if frontier is None else dict(frontier),
            details={**begun.details, **(details or {})},
        )
    )
    row = tx.execute(statement).scalar_one_or_none()
    return None if row is None else _record(row)


def record(
    tx: Session,
    *,
    relation_id: int,
    name: str,
    action: Action,
    status: Outcome,
    initiated_by: Initiator,
    started_at: datetime,
    ended_at: datetime,
    rows_inserted: int = 0,
    rows_deleted: int = 0,
    version_before: int | None = None,
    version_after: int | None = None,
    duration_ms: float | None = None,
    reason: str | None = None,
    error_code: str | None = None,
    error_message: str | None = None,
    frontier: Mapping[str, str] | None = None,
    details: Mapping[str, object] | None = None,
) -> RefreshRecord:
    """Enter a refresh that has already ended."""
    if status is Outcome.RUNNING:
        raise InternalError("a refresh that has ended cannot be running")
    row = _insert(
        tx,
        relation_id=relation_id,
        name=name,
        action=action,
        status=status,
        initiated_by=initiated_by,
        started_at=started_at,
        ended_at=ended_at,
        rows_inserted=rows_inserted,
        rows_deleted=rows_deleted,
        version_before=version_before,
        version_after=version_after,
        duration_ms=_milliseconds(started_at, ended_at) if duration_ms is None else duration_ms,
        reason=reason,
        error_code=error_code,
        error_message=error_message,
        frontier=None if frontier is None else dict(frontier),
        details=dict(details or {}),
    )
    return _record(row)


def find(tx: Session, refresh_id: int) -> RefreshRecord | None:
    """One refresh by its id."""
    row = tx.execute(select(RefreshRow).where(RefreshRow.id == refresh_id)).scalar_one_or_none()
    return None if row is None else _record(row)


def recent(
    tx: Session, relation_id: int | None = None, limit: int = 100, actions: Collection[Action] = ()
) -> list[RefreshRecord]:
    """The last refreshes of one stream table or of all, newest first; of some actions, or of any."""
    statement = select(RefreshRow).order_by(RefreshRow.id.desc()).limit(limit)
    if relation_id is not None:
        statement = statement.where(RefreshRow.relation_id == relation_id)
    if actions:
        statement = statement.where(RefreshRow.action.in_(actions))
    return [_record(row) for row in tx.execute(statement).scalars()]


def last_skips(tx: Session) -> dict[int, tuple[datetime, str]]:
    """The stream tables whose last row of history says that a gate held them back: when, and why."""
    newest = select(func.max(RefreshRow.id)).group_by(RefreshRow.relation_id).scalar_subquery()
    statement = select(RefreshRow.relation_id, RefreshRow.ended_at, RefreshRow.reason, RefreshRow.details).where(
        RefreshRow.id.in_(newest), RefreshRow.action == Action.SKIP
    )
    found = tx.execute(statement)
    return {table: (at, reason or "") for table, at, reason, details in found if at is not None and "gate" in details}


def running(tx: Session, relation_id: int | None = None) -> list[RefreshRecord]:
    """Refreshes without an end, oldest first: under way, or cut short by a crash."""
    statement = select(RefreshRow).where(RefreshRow.status == Outcome.RUNNING).order_by(RefreshRow.id)
    if relation_id is not None:
        statement = statement.where(RefreshRow.relation_id == relation_id)
    return [_record(row) for row in tx.execute(statement).scalars()]


def purge(tx: Session, before: datetime, batch: int) -> int:
    """Remove at most ``batch`` ended refreshes that began before a time, oldest first; returns how many."""
    old = (
        select(RefreshRow.id)
        .where(RefreshRow.started_at < before, RefreshRow.status != Outcome.RUNNING)
        .order_by(RefreshRow.started_at, RefreshRow.id)
        .limit(batch)
    )
    statement = delete(RefreshRow).where(RefreshRow.id.in_(old.scalar_subquery())).returning(RefreshRow.id)
    return len(tx.execute(statement).all())


def _insert(tx: Session, **values: Any) -> RefreshRow:
    return tx.execute(insert(RefreshRow).values(**values).returning(RefreshRow)).scalar_one()


def _milliseconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000


def _record(row: RefreshRow) -> RefreshRecord:
    return RefreshRecord(
        id=row.id,
        relation_id=row.relation_id,
        name=row.name,
        action=row.action,
        status=row.status,
        initiated_by=row.initiated_by,
        started_at=row.started_at,
        ended_at=row.ended_at,
        rows_inserted=row.rows_inserted,
        rows_deleted=row.rows_deleted,
        version_before=row.version_before,
        version_after=row.version_after,
        duration_ms=row.duration_ms,
        reason=row.reason,
        error_code=row.error_code,
        error_message=row.error_message,
        frontier=row.frontier,
        details=row.details,
    )
