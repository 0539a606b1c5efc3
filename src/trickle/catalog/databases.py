"""Attached PostgreSQL databases, and which of their tables are replicas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import delete, insert, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.catalog import labels, relations
from trickle.catalog.failures import unique_or
from trickle.catalog.models import DatabaseRow, PinRow, RelationRow, ReplicaRow
from trickle.catalog.outside import Database, Replica, ReplicaStatus
from trickle.catalog.records import Pin
from trickle.errors import DuplicateName

_WHAT = "database"


class DatabaseFields(TypedDict, total=False):
    """What ``update`` can change."""

    dsn: str
    cdc_mode: str
    options: Mapping[str, Any]
    ingested_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None


class ReplicaFields(TypedDict, total=False):
    """What ``update_replica`` can change."""

    schema_name: str
    table_name: str
    shape: Mapping[str, Any]
    status: ReplicaStatus
    problem: str | None
    loaded_at: datetime | None


def add(tx: Session, name: str, *, dsn: str, cdc_mode: str, options: Mapping[str, Any], now: datetime) -> Database:
    """Attach a database under a name of its own."""
    label = labels.check_label(name, _WHAT)
    values = {
        "name": label,
        "name_key": labels.key(label),
        "dsn": dsn,
        "cdc_mode": cdc_mode,
        "options": dict(options),
        "created_at": now,
    }
    with unique_or(tx, lambda: labels.taken_label(label, _WHAT)):
        row = tx.execute(insert(DatabaseRow).values(**values).returning(DatabaseRow)).scalar_one()
    return _record(row)


def find(tx: Session, name: str) -> Database | None:
    """The database of this name, if there is one."""
    row = tx.execute(select(DatabaseRow).where(DatabaseRow.name_key == labels.key(name))).scalar_one_or_none()
    return None if row is None else _record(row)


def get(tx: Session, name: str) -> Database:
    """The database of this name; an error with the nearest name when there is none."""
    found = find(tx, name)
    if found is None:
        raise labels.unknown_label(name, _WHAT, (one.name for one in listing(tx)))
    return found


def by_id(tx: Session, database_id: int) -> Database:
    """The database with this id."""
    return _record(tx.execute(select(DatabaseRow).where(DatabaseRow.id == database_id)).scalar_one())


def listing(tx: Session) -> list[Database]:
    """All databases, by name."""
    return [_record(row) for row in tx.execute(select(DatabaseRow).order_by(DatabaseRow.name_key)).scalars()]


def update(tx: Session, database_id: int, **fields: Unpack[DatabaseFields]) -> None:
    """Change some fields of a database."""
    values: dict[str, Any] = dict(fields)
    if "options" in values:
        values["options"] = dict(values["options"])
    tx.execute(sql_update(DatabaseRow).where(DatabaseRow.id == database_id).values(**values))


def remove(tx: Session, database_id: int) -> None:
    """Detach a database whose replicas are gone."""
    tx.execute(delete(DatabaseRow).where(DatabaseRow.id == database_id))


def add_replica(
    tx: Session, relation_id: int, database_id: int, *, oid: int, schema: str, table: str, shape: Mapping[str, Any]
) -> None:
    """Make a relation of kind REPLICA the replica of a table, to be loaded."""
    values: dict[str, Any] = {
        "relation_id": relation_id,
        "database_id": database_id,
        "oid": oid,
        "schema_name": schema,
        "table_name": table,
        "shape": dict(shape),
        "status": ReplicaStatus.LOADING,
    }
    with unique_or(tx, lambda: DuplicateName(f"{schema}.{table} is attached already")):
        tx.execute(insert(ReplicaRow).values(**values))


def replicas(tx: Session, database_id: int | None = None) -> list[Replica]:
    """The replicas of a database, or all, by name."""
    statement = (
        select(ReplicaRow, RelationRow, PinRow)
        .join(RelationRow, RelationRow.id == ReplicaRow.relation_id)
        .join(PinRow, PinRow.relation_id == ReplicaRow.relation_id)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    if database_id is not None:
        statement = statement.where(ReplicaRow.database_id == database_id)
    return [_replica(row, relation, pin) for row, relation, pin in tx.execute(statement)]


def replica_of(tx: Session, relation_id: int) -> Replica:
    """The replica with this relation id; ConcurrentModification when it was dropped since."""
    for found in replicas(tx):
        if found.relation.id == relation_id:
            return found
    raise relations.dropped(relation_id)


def update_replica(tx: Session, relation_id: int, **fields: Unpack[ReplicaFields]) -> None:
    """Change some fields of a replica."""
    values: dict[str, Any] = dict(fields)
    if "shape" in values:
        values["shape"] = dict(values["shape"])
    statement = sql_update(ReplicaRow).where(ReplicaRow.relation_id == relation_id).values(**values)
    if tx.execute(statement.returning(ReplicaRow.relation_id)).scalar_one_or_none() is None:
        raise relations.dropped(relation_id)


def mark_lost(tx: Session, relation_id: int, why: str) -> None:
    """Have a replica loaded anew."""
    update_replica(tx, relation_id, status=ReplicaStatus.LOADING, problem=why)


def _replica(row: ReplicaRow, relation: RelationRow, pin: PinRow) -> Replica:
    return Replica(
        relation=relations.record(relation),
        database_id=row.database_id,
        oid=row.oid,
        schema=row.schema_name,
        table=row.table_name,
        shape=row.shape,
        status=row.status,
        problem=row.problem,
        loaded_at=row.loaded_at,
        pin=Pin(pin.relation_id, pin.version, pin.number, pin.position),
    )


def _record(row: DatabaseRow) -> Database:
    return Database(
        id=row.id,
        name=row.name,
        dsn=row.dsn,
        cdc_mode=row.cdc_mode,
        options=row.options,
        ingested_at=row.ingested_at,
        last_error=row.last_error,
        last_error_at=row.last_error_at,
        created_at=row.created_at,
    )
