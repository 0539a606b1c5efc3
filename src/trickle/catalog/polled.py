"""Sources that are read whole from time to time: where they are, when they were read, how that went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import exists, insert, or_, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.catalog import relations
from trickle.catalog.models import DatabaseRow, PinRow, PolledRow, RelationRow
from trickle.catalog.outside import Polled, PolledKind, ReplicaStatus
from trickle.catalog.records import Pin


class PolledFields(TypedDict, total=False):
    """What ``update`` can change."""

    schedule: str
    status: ReplicaStatus
    problem: str | None
    polled_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None


def add(tx: Session, relation_id: int, *, kind: PolledKind, definition: Mapping[str, Any], schedule: str) -> None:
    """Make a relation of kind REPLICA a source that is polled, to be read."""
    values: dict[str, Any] = {
        "relation_id": relation_id,
        "kind": kind,
        "definition": dict(definition),
        "schedule": schedule,
        "status": ReplicaStatus.LOADING,
    }
    tx.execute(insert(PolledRow).values(**values))


def is_anything_outside(tx: Session) -> bool:
    """Whether there is a polled source or an attached database, asked in one statement: most catalogs have neither."""
    return bool(tx.execute(select(or_(exists(select(PolledRow.relation_id)), exists(select(DatabaseRow.id))))).scalar())


def listing(tx: Session) -> list[Polled]:
    """All of them, by name."""
    statement = (
        select(PolledRow, RelationRow, PinRow)
        .join(RelationRow, RelationRow.id == PolledRow.relation_id)
        .join(PinRow, PinRow.relation_id == PolledRow.relation_id)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    return [
        Polled(
            relation=relations.record(relation),
            kind=row.kind,
            definition=row.definition,
            schedule=row.schedule,
            status=row.status,
            problem=row.problem,
            polled_at=row.polled_at,
            last_error=row.last_error,
            last_error_at=row.last_error_at,
            pin=Pin(pin.relation_id, pin.version, pin.number, pin.position),
        )
        for row, relation, pin in tx.execute(statement)
    ]


def find(tx: Session, relation_id: int) -> Polled | None:
    """The polled source with this relation id, if it is one."""
    return next((found for found in listing(tx) if found.relation.id == relation_id), None)


def update(tx: Session, relation_id: int, **fields: Unpack[PolledFields]) -> None:
    """Change some fields; nothing happens when it was let go of meanwhile."""
    tx.execute(sql_update(PolledRow).where(PolledRow.relation_id == relation_id).values(**fields))
