"""Pins: which version of a lake table readers see, how often it was moved, and the position of its source there.

A stream table has its pin among its own fields; this is for all others that are moved by a unit.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.catalog import relations
from trickle.catalog.models import PinRow
from trickle.catalog.records import Pin


def add(tx: Session, relation_id: int, now: datetime, *, version: int | None = None, number: int = 0) -> Pin:
    """Pin a relation; nobody sees any version before the first ``move``, unless one is given.

    ``number``: of the last unit that moved it, where it was pinned before. A number must not be given out twice.
    """
    tx.execute(insert(PinRow).values(relation_id=relation_id, version=version, number=number, updated_at=now))
    return Pin(relation_id, version, number, None)


def remove(tx: Session, relation_id: int) -> None:
    """Have readers see the newest version again."""
    tx.execute(delete(PinRow).where(PinRow.relation_id == relation_id))


def find(tx: Session, relation_id: int) -> Pin | None:
    """The pin of a relation, if it has one."""
    return of(tx, [relation_id]).get(relation_id)


def of(tx: Session, relation_ids: Collection[int] | None = None) -> dict[int, Pin]:
    """Pins by relation: all, or of these relations."""
    statement = select(PinRow.relation_id, PinRow.version, PinRow.number, PinRow.position)
    if relation_ids is not None:
        statement = statement.where(PinRow.relation_id.in_(set(relation_ids)))
    return {row.relation_id: Pin(*row) for row in tx.connection().execute(statement)}


def lock(tx: Session, relation_id: int) -> Pin:
    """The pin, held against other writers until the transaction ends. Several: in ascending order of id."""
    row = select(PinRow.relation_id).where(PinRow.relation_id == relation_id)
    tx.execute(row.with_for_update(key_share=True))
    found = find(tx, relation_id)
    if found is None:
        raise relations.dropped(relation_id)
    return found


def move(
    tx: Session, relation_id: int, *, version: int | None, number: int, position: str | None, now: datetime
) -> None:
    """Show readers another version."""
    statement = sql_update(PinRow).where(PinRow.relation_id == relation_id)
    statement = statement.values(version=version, number=number, position=position, updated_at=now)
    if tx.execute(statement.returning(PinRow.relation_id)).scalar_one_or_none() is None:
        raise relations.dropped(relation_id)
