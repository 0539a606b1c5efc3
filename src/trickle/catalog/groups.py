"""Refresh groups: stream tables that are refreshed and committed together because somebody said so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import labels, streams
from trickle.catalog.failures import unique_or
from trickle.catalog.models import RefreshGroupMemberRow, RefreshGroupRow, RelationRow
from trickle.catalog.records import Isolation, RefreshGroup, StreamTable
from trickle.errors import ConcurrentModification, InvalidOption

_WHAT = "refresh group"


def create(
    tx: Session,
    name: str,
    members: Iterable[TableName],
    *,
    now: datetime,
    isolation: str = Isolation.READ_COMMITTED,
) -> RefreshGroup:
    """Declare a group of two stream tables or more; each can be in one group only."""
    label = labels.check_label(name, _WHAT)
    chosen = _isolation(isolation)
    tables = {table.relation.id: table for table in (streams.get(tx, member) for member in members)}
    if len(tables) < 2:
        raise InvalidOption(f"the {_WHAT} {label!r} needs two stream tables or more")
    _refuse_others(tx, tables)
    with unique_or(tx, lambda: labels.taken_label(label, _WHAT)):
        values = {"name": label, "name_key": labels.key(label), "isolation": chosen.value, "created_at": now}
        group_id = tx.execute(insert(RefreshGroupRow).values(**values).returning(RefreshGroupRow.id)).scalar_one()
    rows = [{"group_id": group_id, "relation_id": member} for member in sorted(tables)]
    with unique_or(tx, _overtaken):
        tx.execute(insert(RefreshGroupMemberRow), rows)
    return next(group for group in listing(tx) if group.id == group_id)


def drop(tx: Session, name: str) -> None:
    """Forget a refresh group; its members are refreshed on their own from then on."""
    statement = delete(RefreshGroupRow).where(RefreshGroupRow.name_key == labels.key(name))
    if tx.execute(statement.returning(RefreshGroupRow.id)).first() is None:
        raise labels.unknown_label(name, _WHAT, [group.name for group in listing(tx)])


def listing(tx: Session) -> list[RefreshGroup]:
    """All refresh groups, by name. One whose members were dropped may have fewer than two."""
    found = tx.execute(select(RefreshGroupRow).order_by(RefreshGroupRow.name_key)).scalars().all()
    if not found:
        return []
    members = tx.execute(
        select(RefreshGroupMemberRow.group_id, RelationRow.id, RelationRow.schema_name, RelationRow.table_name)
        .join(RelationRow, RelationRow.id == RefreshGroupMemberRow.relation_id)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    ).all()
    return [
        RefreshGroup(
            id=group.id,
            name=group.name,
            isolation=Isolation(group.isolation),
            member_ids=tuple(m.id for m in members if m.group_id == group.id),
            members=tuple(TableName(m.schema_name, m.table_name) for m in members if m.group_id == group.id),
            created_at=group.created_at,
        )
        for group in found
    ]


def _isolation(text: str) -> Isolation:
    try:
        return Isolation(text.strip().upper().replace(" ", "_"))
    except ValueError:
        hint = "isolation: " + ", ".join(Isolation)
        raise InvalidOption(f"no isolation {text!r} for a {_WHAT}", hint=hint) from None


def _refuse_others(tx: Session, tables: dict[int, StreamTable]) -> None:
    for group in listing(tx):
        for member in tables.keys() & set(group.member_ids):
            raise InvalidOption(
                f"{tables[member].relation.name} is in the {_WHAT} {group.name!r} already",
                hint="a stream table is in one group only: drop that one first",
            )


def _overtaken() -> ConcurrentModification:
    return ConcurrentModification(
        "another session put one of the stream tables into a group first", hint="run the statement again"
    )
