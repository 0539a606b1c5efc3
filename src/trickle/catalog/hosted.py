"""Stream tables that live in an attached PostgreSQL database.

A row is written before the table is made there, and removed after it is gone. One that belongs to no stream table
stands for what is to be removed: a creation that did not end, or a stream table that was dropped or moved away. The
database knows the table by the uid of its row: a name may be another's, of this warehouse or of one that shares the
database.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, insert, or_, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.catalog import relations
from trickle.catalog.models import HostedRow, StreamTableRow
from trickle.catalog.outside import Hosted
from trickle.catalog.records import RefreshMode


def add(
    tx: Session, database_id: int, *, schema: str, table: str, columns: Mapping[str, Any], text: str, now: datetime
) -> Hosted:
    """Note a table that is about to be made; it belongs to nobody yet."""
    values = {
        "uid": uuid.uuid4().hex,
        "database_id": database_id,
        "schema_name": schema,
        "table_name": table,
        "columns": dict(columns),
        "text": text,
        "created_at": now,
    }
    return _record(tx.execute(insert(HostedRow).values(**values).returning(HostedRow)).scalar_one())


def link(tx: Session, hosted_id: int, relation_id: int) -> None:
    """Make a table that of a stream table: readers find it there from now on."""
    statement = sql_update(HostedRow).where(HostedRow.id == hosted_id).values(relation_id=relation_id)
    if tx.execute(statement.returning(HostedRow.id)).scalar_one_or_none() is None:
        raise relations.dropped(relation_id)


def unlink(tx: Session, relation_id: int) -> None:
    """The stream table no longer lives there; what is left is to be removed."""
    tx.execute(sql_update(HostedRow).where(HostedRow.relation_id == relation_id).values(relation_id=None))


def redefine(tx: Session, hosted_id: int, *, columns: Mapping[str, Any], text: str) -> None:
    """Another query for the same table."""
    statement = sql_update(HostedRow).where(HostedRow.id == hosted_id)
    tx.execute(statement.values(columns=dict(columns), text=text))


def remove(tx: Session, hosted_id: int) -> None:
    """Forget a table that is gone."""
    tx.execute(delete(HostedRow).where(HostedRow.id == hosted_id))


def of(tx: Session, relation_ids: Collection[int]) -> dict[int, Hosted]:
    """Where stream tables live that do not live in the lake, by relation."""
    found = tx.execute(select(HostedRow).where(HostedRow.relation_id.in_(set(relation_ids)))).scalars()
    return {row.relation_id: _record(row) for row in found if row.relation_id is not None}


def listing(tx: Session, database_id: int | None = None) -> list[Hosted]:
    """All that is noted, the oldest first."""
    statement = select(HostedRow).order_by(HostedRow.id)
    if database_id is not None:
        statement = statement.where(HostedRow.database_id == database_id)
    return [_record(row) for row in tx.execute(statement).scalars()]


def left(tx: Session, database_id: int | None = None) -> list[Hosted]:
    """Those that are to be removed: of nobody, or of a stream table that has been filled in the lake."""
    moved = and_(
        StreamTableRow.refresh_mode != RefreshMode.IMMEDIATE,
        StreamTableRow.populated,
        StreamTableRow.version.is_not(None),
    )
    statement = (
        select(HostedRow)
        .outerjoin(StreamTableRow, StreamTableRow.relation_id == HostedRow.relation_id)
        .where(or_(HostedRow.relation_id.is_(None), moved))
        .order_by(HostedRow.id)
    )
    if database_id is not None:
        statement = statement.where(HostedRow.database_id == database_id)
    return [_record(row) for row in tx.execute(statement).scalars()]


def _record(row: HostedRow) -> Hosted:
    return Hosted(
        id=row.id,
        uid=row.uid,
        relation_id=row.relation_id,
        database_id=row.database_id,
        schema=row.schema_name,
        table=row.table_name,
        columns=row.columns,
        text=row.text,
    )
