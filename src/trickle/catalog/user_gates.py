"""Gates that users registered: a SQL predicate or a Python function, over the staged change or over the sources."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from trickle.catalog import labels
from trickle.catalog.failures import unique_or
from trickle.catalog.models import UserGateRow
from trickle.catalog.models.gates import USER_GATE_KINDS
from trickle.catalog.records import UserGate
from trickle.catalog.types import check_query
from trickle.errors import InvalidOption

_WHAT = "gate"


def add(
    tx: Session,
    name: str,
    *,
    kind: str,
    text: str,
    now: datetime,
    tables: Iterable[int] | None = None,
    by: str | None = None,
) -> UserGate:
    """Register a gate for some stream tables, or for all."""
    label = labels.check_label(name, _WHAT)
    _check_one_of("kind", kind, USER_GATE_KINDS)
    if not text.strip():
        raise InvalidOption(f"the gate {label!r} says nothing", hint="give it a SQL predicate or module:function")
    check_query(text)
    values: dict[str, Any] = {
        "name": label,
        "name_key": labels.key(label),
        "kind": kind,
        "text": text,
        "tables": None if tables is None else sorted(set(tables)),
        "created_at": now,
        "created_by": by,
    }
    with unique_or(tx, lambda: labels.taken_label(label, _WHAT)):
        row = tx.execute(insert(UserGateRow).values(**values).returning(UserGateRow)).scalar_one()
    return _record(row)


def drop(tx: Session, name: str) -> None:
    """Forget a gate."""
    statement = delete(UserGateRow).where(UserGateRow.name_key == labels.key(name)).returning(UserGateRow.id)
    if tx.execute(statement).first() is None:
        raise labels.unknown_label(name, _WHAT, [gate.name for gate in listing(tx)])


def listing(tx: Session) -> list[UserGate]:
    """All gates of users, by name."""
    return [_record(row) for row in tx.execute(select(UserGateRow).order_by(UserGateRow.name_key)).scalars()]


def _check_one_of(what: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise InvalidOption(f"a gate's {what} cannot be {value!r}", hint=f"{what}: " + ", ".join(allowed))


def _record(row: UserGateRow) -> UserGate:
    return UserGate(
        id=row.id,
        name=row.name,
        kind=row.kind,
        text=row.text,
        tables=None if row.tables is None else tuple(row.tables),
        created_at=row.created_at,
        created_by=row.created_by,
    )
