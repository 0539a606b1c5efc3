"""Settings kept in the catalog by ``SET trickle.<name> = ...``, as text."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from trickle.catalog.models import SettingRow
from trickle.catalog.upsert import insert_into


def stored(tx: Session) -> dict[str, str]:
    """All stored settings by name."""
    rows = tx.execute(select(SettingRow.name, SettingRow.value).order_by(SettingRow.name))
    return {row.name: row.value for row in rows}


def put(tx: Session, name: str, value: str, now: datetime) -> None:
    """Store a setting, or change it."""
    changed = {"value": value, "updated_at": now}
    statement = insert_into(tx.connection(), SettingRow).values(name=name, **changed)
    tx.execute(statement.on_conflict_do_update(index_elements=[SettingRow.name], set_=changed))


def clear(tx: Session, name: str) -> bool:
    """Forget a setting; False when it was not stored."""
    statement = delete(SettingRow).where(SettingRow.name == name).returning(SettingRow.name)
    return tx.execute(statement).first() is not None
