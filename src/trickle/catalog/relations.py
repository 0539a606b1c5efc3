"""Relations by name and by id, and which of them read which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import delete, insert, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName, nearest
from trickle.catalog.failures import unique_or
from trickle.catalog.models import DependencyRow, IntentMemberRow, RelationRow
from trickle.catalog.records import Dependency, Kind, Relation
from trickle.catalog.types import check_query
from trickle.errors import ConcurrentModification, DependentsExist, DuplicateName, InternalError, UnknownTable

_SHOWN_DEPENDENTS = 5


class RelationFields(TypedDict, total=False):
    """What ``update`` can change."""

    name: TableName
    kind: Kind
    uid: str
    location: str | None
    storage_options: Mapping[str, str]
    query: str | None
    key: Iterable[str]
    comment: str | None


def add(
    tx: Session,
    *,
    name: TableName,
    kind: Kind,
    uid: str,
    location: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    query: str | None = None,
    key: Iterable[str] = (),
    comment: str | None = None,
    now: datetime,
) -> Relation:
    """Enter a new relation; DuplicateName when the name is taken in any spelling."""
    values = _columns(
        {
            "name": name,
            "kind": kind,
            "uid": uid,
            "location": location,
            "storage_options": storage_options or {},
            "query": query,
            "key": key,
            "comment": comment,
        }
    )
    with unique_or(tx, lambda: _taken(tx, name)):
        statement = insert(RelationRow).values(**values, created_at=now, updated_at=now).returning(RelationRow)
        row = tx.execute(statement).scalar_one()
    return record(row)


def find(tx: Session, name: TableName) -> Relation | None:
    """The relation of this name, if there is one."""
    statement = select(RelationRow).where(
        RelationRow.schema_key == name.schema_key, RelationRow.table_key == name.table_key
    )
    row = tx.execute(statement).scalar_one_or_none()
    return None if row is None else record(row)


def get(tx: Session, name: TableName) -> Relation:
    """The relation of this name; UnknownTable with the nearest name when there is none."""
    found = find(tx, name)
    if found is None:
        raise unknown(name, (relation.name for relation in listing(tx)))
    return found


def by_id(tx: Session, relation_id: int) -> Relation:
    """The relation with this id; ConcurrentModification when it was dropped since the id was read."""
    row = tx.execute(select(RelationRow).where(RelationRow.id == relation_id)).scalar_one_or_none()
    if row is None:
        raise dropped(relation_id)
    return record(row)


def lock(tx: Session, relation_id: int) -> Relation:
    """The relation, held against other writers until the transaction ends. Several: in ascending order of id."""
    row = select(RelationRow.id).where(RelationRow.id == relation_id)
    # A statement of its own: it waits, and the next one sees what was written meanwhile.
    tx.execute(row.with_for_update(key_share=True))
    return by_id(tx, relation_id)


def listing(tx: Session, schema: str | None = None) -> list[Relation]:
    """All relations, or those of one schema, by name."""
    statement = select(RelationRow).order_by(RelationRow.schema_key, RelationRow.table_key)
    if schema is not None:
        statement = statement.where(RelationRow.schema_key == schema.lower())
    return [record(row) for row in tx.execute(statement).scalars()]


def update(tx: Session, relation_id: int, *, now: datetime, **fields: Unpack[RelationFields]) -> None:
    """Change some fields of a relation."""
    statement = sql_update(RelationRow).where(RelationRow.id == relation_id)
    statement = statement.values(**_columns(fields), updated_at=now).returning(RelationRow.id)
    with unique_or(tx, lambda: _taken(tx, fields.get("name"))):
        changed = tx.execute(statement).scalar_one_or_none()
    if changed is None:
        raise dropped(relation_id)


def remove(tx: Session, relation_id: int) -> None:
    """Take a relation out with everything that is only about it.

    DependentsExist while others read it: remove those first, or their dependencies. ConcurrentModification while an
    unfinished commit holds it: that must be rolled forward or given up first.
    """
    relation = by_id(tx, relation_id)
    readers = [reader for reader in dependents(tx, relation_id) if reader.relation_id != relation_id]
    if readers:
        names = [str(by_id(tx, reader.relation_id).name) for reader in readers[:_SHOWN_DEPENDENTS]]
        more = len(readers) - len(names)
        raise DependentsExist(
            f"{relation.name} is read by others",
            detail="read by " + ", ".join(names) + (f" and {more} more" if more else ""),
            hint="drop them first, or drop with CASCADE",
        )
    held = select(IntentMemberRow.intent_id).where(IntentMemberRow.relation_id == relation_id)
    if tx.execute(held).first() is not None:
        raise ConcurrentModification(f"{relation.name} is being committed", hint="try again in a moment")
    tx.execute(delete(RelationRow).where(RelationRow.id == relation_id))


def set_dependencies(tx: Session, relation_id: int, sources: Iterable[Dependency]) -> None:
    """Replace what a relation reads."""
    rows = [
        {
            "relation_id": relation_id,
            "source_id": source.source_id,
            "columns": list(source.columns),
            "fingerprint": source.fingerprint,
            "direct": source.direct,
        }
        for source in sources
    ]
    tx.execute(delete(DependencyRow).where(DependencyRow.relation_id == relation_id))
    if rows:
        tx.execute(insert(DependencyRow), rows)


def dependencies(tx: Session, relation_id: int) -> list[Dependency]:
    """What a relation reads."""
    return _dependencies(tx, DependencyRow.relation_id == relation_id)


def dependents(tx: Session, relation_id: int) -> list[Dependency]:
    """What reads a relation."""
    return _dependencies(tx, DependencyRow.source_id == relation_id)


def all_dependencies(tx: Session) -> list[Dependency]:
    """What reads what, for the whole graph."""
    return _dependencies(tx)


def _dependencies(tx: Session, *conditions: Any) -> list[Dependency]:
    statement = (
        select(DependencyRow, RelationRow.kind)
        .join(RelationRow, RelationRow.id == DependencyRow.source_id)
        .where(*conditions)
        .order_by(DependencyRow.relation_id, DependencyRow.source_id)
    )
    return [
        Dependency(row.relation_id, row.source_id, kind, tuple(row.columns), row.fingerprint, row.direct)
        for row, kind in tx.execute(statement)
    ]


def record(row: RelationRow) -> Relation:
    """The record of a row."""
    return Relation(
        id=row.id,
        name=TableName(row.schema_name, row.table_name),
        kind=row.kind,
        uid=row.uid,
        location=row.location,
        storage_options=row.storage_options,
        query=row.query,
        key=tuple(row.key_columns),
        comment=row.comment,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def unknown(name: TableName, known: Iterable[TableName], what: str = "table") -> UnknownTable:
    """The error for a name that is not there."""
    close = nearest(str(name), (str(other) for other in known))
    return UnknownTable(f"no {what} is called {name}", hint=f"did you mean {close}?" if close else None)


def dropped(relation_id: int) -> ConcurrentModification:
    """The error for an id that is no longer there."""
    return ConcurrentModification(
        "the relation was dropped by another session",
        detail=f"relation id {relation_id}",
        hint="run the statement again",
    )


def _taken(tx: Session, name: TableName | None) -> DuplicateName | InternalError:
    holder = find(tx, name) if name is not None else None
    if holder is None:
        return InternalError("the uid of a relation was given out twice")
    return DuplicateName(
        f"{holder.name} is there already",
        detail=f"it is {holder.kind.words}",
        hint="choose another name, or drop it first",
    )


def _columns(fields: Mapping[str, Any] | RelationFields) -> dict[str, Any]:
    """The fields of a record as the columns of its row."""
    columns: dict[str, Any] = dict(fields)
    if "name" in columns:
        name: TableName = columns.pop("name")
        columns |= {
            "schema_name": name.schema,
            "table_name": name.table,
            "schema_key": name.schema_key,
            "table_key": name.table_key,
        }
    if "key" in columns:
        columns["key_columns"] = list(columns.pop("key"))
    if "storage_options" in columns:
        columns["storage_options"] = dict(columns["storage_options"])
    check_query(columns.get("query"))
    return columns
