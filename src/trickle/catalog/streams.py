"""Stream tables: definition, state and frontier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypedDict, Unpack

from sqlalchemy import case, delete, insert, or_, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import relations
from trickle.catalog.models import FrontierRow, RelationRow, StreamTableRow
from trickle.catalog.records import Kind, RefreshMode, Schedulable, Status, StreamTable
from trickle.errors import InternalError, WrongKind

# Below the number of variables that any SQLite allows in a statement.
_AT_ONCE = 10_000


class StreamFields(TypedDict, total=False):
    """What ``update`` can change."""

    query: str
    schedule: str
    refresh_mode: RefreshMode
    effective_mode: str | None
    options: Mapping[str, object]
    status: Status
    populated: bool
    version: int | None
    refresh_number: int
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    consecutive_errors: int
    last_error: str | None
    last_error_at: datetime | None
    needs_reinitialize: bool
    always_refresh: bool
    state: Mapping[str, Any]
    canonical: str | None


def add(
    tx: Session,
    relation_id: int,
    *,
    query: str,
    schedule: str,
    refresh_mode: RefreshMode,
    options: Mapping[str, object],
    always_refresh: bool,
    now: datetime,
    canonical: str | None = None,
) -> StreamTable:
    """Make a relation of kind STREAM_TABLE a stream table that has not been filled yet."""
    relations.update(tx, relation_id, now=now, query=query)
    tx.execute(
        insert(StreamTableRow).values(
            relation_id=relation_id,
            schedule=schedule,
            refresh_mode=refresh_mode,
            options=dict(options),
            status=Status.INITIALIZING,
            populated=False,
            refresh_number=0,
            consecutive_errors=0,
            needs_reinitialize=False,
            always_refresh=always_refresh,
            canonical=canonical,
            updated_at=now,
        )
    )
    return by_id(tx, relation_id)


def find(tx: Session, name: TableName) -> StreamTable | None:
    """The stream table of this name, if there is one."""
    found = _select(tx, RelationRow.schema_key == name.schema_key, RelationRow.table_key == name.table_key)
    return found[0] if found else None


def get(tx: Session, name: TableName) -> StreamTable:
    """The stream table of this name; UnknownTable when nothing has it, WrongKind when something else has it."""
    found = find(tx, name)
    if found is not None:
        return found
    other = relations.find(tx, name)
    if other is None:
        known = (relation.name for relation in relations.listing(tx) if relation.kind is Kind.STREAM_TABLE)
        raise relations.unknown(name, known, "stream table")
    raise WrongKind(f"{other.name} is {other.kind.words}, not a stream table")


def by_id(tx: Session, relation_id: int) -> StreamTable:
    """The stream table with this id; ConcurrentModification when it was dropped since the id was read."""
    found = _select(tx, RelationRow.id == relation_id)
    if not found:
        raise relations.dropped(relation_id)
    return found[0]


def listing(tx: Session) -> list[StreamTable]:
    """All stream tables, by name."""
    return _select(tx)


def lock(tx: Session, relation_id: int) -> StreamTable:
    """The stream table, held against other writers until the transaction ends. Several: in ascending order of id."""
    row = select(StreamTableRow.relation_id).where(StreamTableRow.relation_id == relation_id)
    # A statement of its own: a join would show the other tables as they were before the wait.
    tx.execute(row.with_for_update(key_share=True))
    return by_id(tx, relation_id)


def update(tx: Session, relation_id: int, *, now: datetime, **fields: Unpack[StreamFields]) -> None:
    """Change some fields of a stream table."""
    columns: dict[str, Any] = dict(fields)
    if "query" in columns:
        relations.update(tx, relation_id, now=now, query=columns.pop("query"))
    for name in ("options", "state"):
        if name in columns:
            columns[name] = dict(columns[name])
    statement = sql_update(StreamTableRow).where(StreamTableRow.relation_id == relation_id)
    statement = statement.values(**columns, updated_at=now).returning(StreamTableRow.relation_id)
    changed = tx.execute(statement).scalar_one_or_none()
    if changed is None:
        raise relations.dropped(relation_id)


def set_frontier(tx: Session, relation_id: int, frontier: Mapping[int, str]) -> None:
    """Replace the positions that a stream table's contents reflect."""
    tx.execute(delete(FrontierRow).where(FrontierRow.relation_id == relation_id))
    if frontier:
        rows = [
            {"relation_id": relation_id, "source_id": source_id, "position": position}
            for source_id, position in sorted(frontier.items())
        ]
        tx.execute(insert(FrontierRow), rows)


def mark_idle(tx: Session, ids: Iterable[int], at: datetime, now: datetime) -> None:
    """Note that filled stream tables are as fresh as ``at`` without having been computed; times only move forward."""
    wanted = sorted(set(ids))
    refreshed, reflected = StreamTableRow.last_refresh_at, StreamTableRow.data_timestamp
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        statement = (
            sql_update(StreamTableRow)
            .where(StreamTableRow.relation_id.in_(some), StreamTableRow.populated)
            .values(
                last_refresh_at=case((or_(refreshed.is_(None), refreshed < now), now), else_=refreshed),
                data_timestamp=case((or_(reflected.is_(None), reflected < at), at), else_=reflected),
            )
        )
        tx.execute(statement)


def schedulable(tx: Session) -> list[Schedulable]:
    """All stream tables of the lake as the scheduler sees them, by id. Plain rows: this is read at every tick."""
    stream = StreamTableRow
    # On the connection: the session would look for objects in them.
    rows = (
        tx.connection()
        .execute(
            select(
                stream.relation_id,
                RelationRow.schema_name,
                RelationRow.table_name,
                stream.schedule,
                stream.options,
                stream.status,
                stream.refresh_mode,
                stream.populated,
                stream.version,
                stream.last_refresh_at,
                stream.data_timestamp,
                stream.needs_reinitialize,
                stream.always_refresh,
                stream.consecutive_errors,
            )
            .join(RelationRow, RelationRow.id == stream.relation_id)
            # Those without a place in the lake live elsewhere, and nothing here refreshes them.
            .where(RelationRow.location.is_not(None))
            .order_by(stream.relation_id)
        )
        .all()
    )
    frontiers = _frontiers(tx, None) if rows else {}
    return [
        Schedulable(relation_id, _name(schema, table), frontiers.get(relation_id, {}), *others)
        for relation_id, schema, table, *others in rows
    ]


@lru_cache(maxsize=100_000)
def _name(schema: str, table: str) -> TableName:
    # A third of the time that a tick takes to read its tables would go into checking names that were checked before.
    return TableName(schema, table)


def _select(tx: Session, *conditions: Any) -> list[StreamTable]:
    statement = (
        select(StreamTableRow, RelationRow)
        .join(RelationRow, RelationRow.id == StreamTableRow.relation_id)
        .where(*conditions)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    rows = tx.execute(statement).all()
    if not rows:
        return []
    frontiers = _frontiers(tx, rows[0][0].relation_id if len(rows) == 1 else None)
    return [_record(row, relation, frontiers.get(row.relation_id, {})) for row, relation in rows]


def _frontiers(tx: Session, relation_id: int | None) -> dict[int, dict[int, str]]:
    statement = select(FrontierRow.relation_id, FrontierRow.source_id, FrontierRow.position)
    if relation_id is not None:
        statement = statement.where(FrontierRow.relation_id == relation_id)
    found: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for owner, source_id, position in tx.connection().execute(statement.order_by(FrontierRow.source_id)):
        found[owner][source_id] = position
    return found


def _record(row: StreamTableRow, relation: RelationRow, frontier: Mapping[int, str]) -> StreamTable:
    if relation.query is None:
        raise InternalError("a stream table lost its query", detail=f"relation id {relation.id}")
    return StreamTable(
        relation=relations.record(relation),
        query=relation.query,
        schedule=row.schedule,
        refresh_mode=row.refresh_mode,
        effective_mode=row.effective_mode,
        options=row.options,
        status=row.status,
        populated=row.populated,
        version=row.version,
        refresh_number=row.refresh_number,
        frontier=frontier,
        data_timestamp=row.data_timestamp,
        last_refresh_at=row.last_refresh_at,
        consecutive_errors=row.consecutive_errors,
        last_error=row.last_error,
        last_error_at=row.last_error_at,
        needs_reinitialize=row.needs_reinitialize,
        always_refresh=row.always_refresh,
        state=row.state or {},
        canonical=row.canonical,
        updated_at=row.updated_at,
    )
