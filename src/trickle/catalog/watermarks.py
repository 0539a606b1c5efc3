"""Watermarks: how far each source is complete, what it was before, and which sources must keep step.

A watermark only grows. That is left to the database, in one statement: of two loaders that speak at the same moment
the one with the smaller watermark is refused, whoever comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import labels, relations
from trickle.catalog.failures import unique_or
from trickle.catalog.models import (
    RelationRow,
    WatermarkGroupMemberRow,
    WatermarkGroupRow,
    WatermarkHistoryRow,
    WatermarkRow,
)
from trickle.catalog.models.gates import WATERMARK_MODES
from trickle.catalog.records import Kind, Relation, WatermarkGroupRecord, WatermarkRecord
from trickle.catalog.upsert import insert_into
from trickle.errors import InvalidOption, WrongKind

_WHAT = "watermark group"


def advance(
    tx: Session,
    source_id: int,
    watermark: datetime,
    *,
    position: str | None,
    by: str | None,
    now: datetime,
) -> WatermarkRecord:
    """Say that a source is complete up to a time, at its present position.

    A smaller watermark than the stored one is refused; the same changes nothing, and the stored one is returned.
    """
    said: dict[str, Any] = {"watermark": watermark, "position": position, "advanced_by": by, "updated_at": now}
    statement = insert_into(tx.connection(), WatermarkRow).values(source_id=source_id, **said)
    statement = statement.on_conflict_do_update(
        index_elements=[WatermarkRow.source_id], set_=said, where=WatermarkRow.watermark < watermark
    )
    if tx.execute(statement.returning(WatermarkRow.source_id)).first() is not None:
        past = {"watermark": watermark, "position": position, "advanced_at": now, "advanced_by": by}
        tx.execute(insert(WatermarkHistoryRow).values(source_id=source_id, **past))
    stored = find(tx, source_id)
    if stored is None:
        raise relations.dropped(source_id)
    if watermark < stored.watermark:
        raise InvalidOption(
            f"the watermark of {stored.name} cannot go back",
            detail=f"it is {stored.watermark.isoformat()}, and {watermark.isoformat()} is before that",
            hint="a watermark says that everything before it is there: it only moves forward",
        )
    return stored


def find(tx: Session, source_id: int) -> WatermarkRecord | None:
    """The watermark of a source; None when its loader never said one."""
    found = _select(tx, WatermarkRow.source_id == source_id)
    return found[0] if found else None


def listing(tx: Session) -> list[WatermarkRecord]:
    """The watermarks of all sources that have one, by name."""
    return _select(tx)


def history(tx: Session, source_id: int, *, upto: datetime | None = None, limit: int = 1000) -> list[WatermarkRecord]:
    """The watermarks that a source had, newest first; only those not after a time when one is given."""
    row = WatermarkHistoryRow
    statement = select(row).where(row.source_id == source_id).order_by(row.watermark.desc()).limit(limit)
    if upto is not None:
        statement = statement.where(row.watermark <= upto)
    found = tx.execute(statement).scalars().all()
    if not found:
        return []
    name = relations.by_id(tx, source_id).name
    return [WatermarkRecord(source_id, name, r.watermark, r.position, r.advanced_by, r.advanced_at) for r in found]


def forget(tx: Session, source_id: int, before: datetime) -> int:
    """Remove what a source had before the newest watermark that is not after a time; returns how many.

    Hold-back never asks for more than that when ``before`` is what its groups have everywhere.
    """
    row = WatermarkHistoryRow
    newest = select(func.max(row.watermark)).where(row.source_id == source_id, row.watermark <= before)
    statement = delete(row).where(row.source_id == source_id, row.watermark < newest.scalar_subquery())
    return len(tx.execute(statement.returning(row.source_id)).all())


def base_source(tx: Session, name: TableName) -> Relation:
    """A table that others load, and that can have a watermark."""
    relation = relations.get(tx, name)
    if relation.kind not in (Kind.TABLE, Kind.ATTACHED, Kind.REPLICA):
        raise WrongKind(
            f"{relation.name} is {relation.kind.words}, which nobody loads",
            hint="name the tables that it is made from",
        )
    return relation


def create_group(
    tx: Session,
    name: str,
    sources: Iterable[TableName],
    *,
    tolerance: timedelta,
    now: datetime,
    mode: str = "gate",
) -> WatermarkGroupRecord:
    """Declare that the watermarks of some sources must lie within a tolerance of each other."""
    label = labels.check_label(name, _WHAT)
    if mode not in WATERMARK_MODES:
        raise InvalidOption(f"no watermark mode {mode!r}", hint="watermark modes: " + ", ".join(WATERMARK_MODES))
    if tolerance < timedelta():
        raise InvalidOption("the tolerance of a watermark group is not negative", detail=str(tolerance))
    members = {relation.id: relation for relation in (base_source(tx, source) for source in sources)}
    if len(members) < 2:
        raise InvalidOption(f"the {_WHAT} {label!r} needs two sources or more")
    with unique_or(tx, lambda: labels.taken_label(label, _WHAT)):
        values = {"name": label, "name_key": labels.key(label), "mode": mode, "created_at": now}
        added = insert(WatermarkGroupRow).values(tolerance_seconds=tolerance.total_seconds(), **values)
        group_id = tx.execute(added.returning(WatermarkGroupRow.id)).scalar_one()
    tx.execute(
        insert(WatermarkGroupMemberRow), [{"group_id": group_id, "source_id": member} for member in sorted(members)]
    )
    return next(group for group in groups(tx) if group.id == group_id)


def drop_group(tx: Session, name: str) -> None:
    """Forget a watermark group; the watermarks stay."""
    statement = delete(WatermarkGroupRow).where(WatermarkGroupRow.name_key == labels.key(name))
    if tx.execute(statement.returning(WatermarkGroupRow.id)).first() is None:
        raise labels.unknown_label(name, _WHAT, [group.name for group in groups(tx)])


def groups(tx: Session) -> list[WatermarkGroupRecord]:
    """All watermark groups, by name."""
    found = tx.execute(select(WatermarkGroupRow).order_by(WatermarkGroupRow.name_key)).scalars().all()
    if not found:
        return []
    members = tx.execute(
        select(WatermarkGroupMemberRow.group_id, RelationRow.id, RelationRow.schema_name, RelationRow.table_name)
        .join(RelationRow, RelationRow.id == WatermarkGroupMemberRow.source_id)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    ).all()
    return [
        WatermarkGroupRecord(
            id=group.id,
            name=group.name,
            mode=group.mode,
            tolerance_seconds=group.tolerance_seconds,
            source_ids=tuple(m.id for m in members if m.group_id == group.id),
            sources=tuple(TableName(m.schema_name, m.table_name) for m in members if m.group_id == group.id),
            created_at=group.created_at,
        )
        for group in found
    ]


def _select(tx: Session, *conditions: Any) -> list[WatermarkRecord]:
    statement = (
        select(WatermarkRow, RelationRow.schema_name, RelationRow.table_name)
        .join(RelationRow, RelationRow.id == WatermarkRow.source_id)
        .where(*conditions)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    return [
        WatermarkRecord(
            source_id=row.source_id,
            name=TableName(schema, table),
            watermark=row.watermark,
            position=row.position,
            advanced_by=row.advanced_by,
            updated_at=row.updated_at,
        )
        for row, schema, table in tx.execute(statement)
    ]
