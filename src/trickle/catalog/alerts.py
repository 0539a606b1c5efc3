"""Alerts: kept when what they speak of is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, insert, select, text
from sqlalchemy.orm import Session

from trickle.catalog.migrate import POSTGRES_SCHEMA
from trickle.catalog.models import AlertRow
from trickle.catalog.records import Alert, Event, Severity
from trickle.errors import InternalError


def add(
    tx: Session,
    *,
    event: str,
    now: datetime,
    severity: Severity | None = None,
    relation_id: int | None = None,
    payload: Mapping[str, object] | None = None,
) -> Alert:
    """Enter an alert, as severe as its event is unless said otherwise.

    The payload should name the relation: its id is cleared when it is dropped.
    """
    statement = insert(AlertRow).values(
        event=event,
        severity=severity or _usual(event),
        relation_id=relation_id,
        payload=dict(payload or {}),
        created_at=now,
    )
    return _record(tx.execute(statement.returning(AlertRow)).scalar_one())


def recent(tx: Session, relation_id: int | None = None, *, event: str | None = None, limit: int = 100) -> list[Alert]:
    """The last alerts, of one relation or one event if given, newest first."""
    statement = select(AlertRow).order_by(AlertRow.id.desc()).limit(limit)
    if relation_id is not None:
        statement = statement.where(AlertRow.relation_id == relation_id)
    if event is not None:
        statement = statement.where(AlertRow.event == event)
    return [_record(row) for row in tx.execute(statement).scalars()]


def after(tx: Session, alert_id: int, limit: int) -> list[Alert]:
    """The alerts that came after one, oldest first."""
    statement = select(AlertRow).where(AlertRow.id > alert_id).order_by(AlertRow.id).limit(limit)
    return [_record(row) for row in tx.execute(statement).scalars()]


def settle(tx: Session) -> None:
    """Wait for those who are entering alerts: no smaller id than one that is seen from now on can still appear.

    PostgreSQL gives out ids before it commits, so that without this a later alert may be seen before an earlier one.
    """
    if tx.get_bind().dialect.name == "postgresql":
        tx.execute(text(f"LOCK TABLE {POSTGRES_SCHEMA}.alerts IN SHARE MODE"))


def purge(tx: Session, before: datetime, batch: int) -> int:
    """Remove at most ``batch`` alerts older than a time; returns how many."""
    old = select(AlertRow.id).where(AlertRow.created_at < before).order_by(AlertRow.id).limit(batch)
    statement = delete(AlertRow).where(AlertRow.id.in_(old.scalar_subquery())).returning(AlertRow.id)
    return len(tx.execute(statement).all())


def _usual(event: str) -> Severity:
    try:
        return Event(event).severity
    except ValueError:
        raise InternalError(f"an alert of the unknown event {event!r} needs a severity") from None


def _record(row: AlertRow) -> Alert:
    return Alert(
        id=row.id,
        event=row.event,
        relation_id=row.relation_id,
        severity=row.severity,
        payload=row.payload,
        created_at=row.created_at,
    )
