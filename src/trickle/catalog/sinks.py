"""How far each sink has heard the alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from trickle.catalog.models import AlertCursorRow, AlertRow
from trickle.catalog.records import AlertCursor
from trickle.catalog.upsert import insert_into


def begin(tx: Session, sink: str, since: datetime, now: datetime) -> AlertCursor:
    """The cursor of a sink; one that is new begins with the alerts that were raised after a time."""
    known = find(tx, sink)
    if known is not None:
        return known
    heard = select(func.max(AlertRow.id)).where(AlertRow.created_at < since)
    first = tx.execute(heard).scalar() or 0
    statement = insert_into(tx.connection(), AlertCursorRow)
    statement = statement.values(sink=sink, alert_id=first, failures=0, updated_at=now)
    tx.execute(statement.on_conflict_do_nothing(index_elements=[AlertCursorRow.sink]))
    return find(tx, sink) or AlertCursor(sink, first, 0, None, now)


def note(tx: Session, sink: str, alert_id: int, now: datetime, error: str | None = None) -> AlertCursor:
    """Say what a sink has heard now, and what went wrong after that. A cursor never goes back."""
    row = AlertCursorRow
    said: dict[str, Any] = {"alert_id": alert_id, "failures": int(error is not None), "last_error": error}
    statement = insert_into(tx.connection(), row).values(sink=sink, updated_at=now, **said)
    # The name of the greatest of two numbers is not the same everywhere.
    greatest = func.max if tx.get_bind().dialect.name == "sqlite" else func.greatest
    again: dict[str, Any] = {
        "alert_id": greatest(row.alert_id, alert_id),
        "failures": 0 if error is None else row.failures + 1,
        "last_error": error,
        "updated_at": now,
    }
    statement = statement.on_conflict_do_update(index_elements=[row.sink], set_=again)
    return _record(tx.execute(statement.returning(row)).scalar_one())


def find(tx: Session, sink: str) -> AlertCursor | None:
    """The cursor of a sink; None when it never was asked to deliver."""
    row = tx.execute(select(AlertCursorRow).where(AlertCursorRow.sink == sink)).scalar_one_or_none()
    return None if row is None else _record(row)


def listing(tx: Session) -> list[AlertCursor]:
    """All cursors, by sink."""
    return [_record(row) for row in tx.execute(select(AlertCursorRow).order_by(AlertCursorRow.sink)).scalars()]


def _record(row: AlertCursorRow) -> AlertCursor:
    return AlertCursor(row.sink, row.alert_id, row.failures, row.last_error, row.updated_at)
