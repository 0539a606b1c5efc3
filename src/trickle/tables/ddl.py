"""CREATE, ALTER, DROP of base tables and views."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName, check_columns, nearest, quote
from trickle.catalog import relations
from trickle.catalog.records import Dependency, Kind, Relation
from trickle.dag.graph import order
from trickle.engine.ddl import parse_ddl
from trickle.errors import (
    CatalogUnreachable,
    DuplicateName,
    InvalidOption,
    TrickleError,
    UnknownColumn,
    WrongKind,
)
from trickle.lake.commit import commit
from trickle.lake.create import create, drop
from trickle.lake.location import Location
from trickle.lake.rewrite import append
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.sql import CreateTable, CreateView, Drop, SqlText, query
from trickle.tables import guard, pinning
from trickle.tables.reading import Reading, resolve
from trickle.tables.results import Done
from trickle.warehouse import Warehouse


def create_table(warehouse: Warehouse, statement: CreateTable) -> Done:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS], with columns or AS a query."""
    existing = _existing(warehouse, statement.name)
    if existing is not None:
        if statement.if_not_exists:
            return Done(f"table {statement.name} exists already")
        if not statement.or_replace:
            raise taken(existing)
        if existing.kind is not Kind.TABLE:
            raise WrongKind(f"{statement.name} is not a base table and cannot be replaced by one")
    frame = _bind(warehouse, statement.query) if statement.query is not None else None
    schema = relaxed(frame.schema) if frame is not None else _declared(warehouse, statement)
    check_columns(schema.names)
    key = [_column(c, schema, statement.name) for c in statement.primary_key]
    partition = [_column(c, schema, statement.name) for c in statement.partitioned_by]
    if existing is not None:
        _protect_replaced(warehouse, existing, schema)
    location = warehouse.place_for(statement.name)
    snapshot = create(
        location,
        _with_key(schema, key),
        partition_by=partition,
        properties=statement.properties,
        comment=statement.comment,
    )
    try:
        if frame is not None:
            prepared = append(warehouse.engine, snapshot, frame)
            if not prepared.is_empty:
                commit(prepared.as_commit())
        _register(warehouse, statement, location, key, existing)
    except BaseException:
        drop_unregistered(warehouse, statement.name, location)
        raise
    if existing is not None:
        drop(warehouse.location_of(existing))
    return Done(f"table {statement.name} {'replaced' if existing else 'created'}")


def _existing(warehouse: Warehouse, name: TableName) -> Relation | None:
    with warehouse.catalog.read() as tx:
        return relations.find(tx, name)


def drop_unregistered(warehouse: Warehouse, name: TableName, location: Location) -> None:
    """Remove a folder that was made for a relation, unless the catalog has it after all or cannot be asked."""
    try:
        with warehouse.catalog.read() as tx:
            found = relations.find(tx, name)
    except CatalogUnreachable:
        return
    if found is None or found.location is None or warehouse.location_of(found) != location:
        drop(location)


def taken(existing: Relation) -> DuplicateName:
    """The error for a name that is in use."""
    return DuplicateName(
        f"{existing.name} exists already", detail=f"it is {existing.kind.words}", hint="drop it, or choose another name"
    )


def _declared(warehouse: Warehouse, statement: CreateTable) -> StructType:
    parts = []
    for column in statement.columns:
        null = "" if column.nullable else " NOT NULL"
        parts.append(f"{quote(column.name)} {column.type}{null}")
    schema = parse_ddl(warehouse.engine, ", ".join(parts))
    comments = {c.name: c.comment for c in statement.columns if c.comment}
    return StructType(
        [
            StructField(f.name, f.dataType, f.nullable, {"comment": comments[f.name]} if f.name in comments else None)
            for f in schema.fields
        ]
    )


def _with_key(schema: StructType, key: Sequence[str]) -> StructType:
    """Columns of a primary key are NOT NULL, as everywhere in SQL."""
    return StructType(
        [StructField(f.name, f.dataType, f.nullable and f.name not in key, f.metadata) for f in schema.fields]
    )


def _column(name: str, schema: StructType, table: TableName) -> str:
    for field in schema.fields:
        if field.name.lower() == name.lower():
            return field.name
    close = nearest(name, schema.names)
    raise UnknownColumn(f"table {table} has no column {name!r}", hint=f"did you mean {close!r}?" if close else None)


def _protect_replaced(warehouse: Warehouse, existing: Relation, schema: StructType) -> None:
    """A replaced table may keep its readers when every column that they use stays as it is."""
    lost = lost_columns(open_snapshot(warehouse.location_of(existing)).schema, schema)
    with warehouse.catalog.write() as tx:
        now = warehouse.clock.now()
        guard.refuse_following(tx, existing, None, f"replace {existing.name}")
        if lost:
            guard.protect(tx, existing, lost, f"replace {existing.name}", warehouse.settings(tx), now)
        guard.mark(tx, guard.dependents(tx, existing), now)


def _register(
    warehouse: Warehouse, statement: CreateTable, location: Location, key: Sequence[str], existing: Relation | None
) -> None:
    now = warehouse.clock.now()
    kept = warehouse.relative(location)
    uid = uuid.uuid4().hex
    with warehouse.catalog.write() as tx:
        if existing is None:
            relations.add(
                tx,
                name=statement.name,
                kind=Kind.TABLE,
                uid=uid,
                location=kept,
                key=tuple(key),
                comment=statement.comment,
                now=now,
            )
        else:
            # Asked again: a stream table may have become IMMEDIATE while the rows were written.
            relations.lock(tx, existing.id)
            guard.refuse_following(tx, existing, None, f"replace {existing.name}")
            relations.update(
                tx, existing.id, now=now, uid=uid, location=kept, key=tuple(key), comment=statement.comment
            )


def _bind(warehouse: Warehouse, text: SqlText) -> DataFrame:
    with warehouse.catalog.read() as tx:
        reading = resolve(warehouse, tx, text)
    return reading.bind(text)


def create_view(warehouse: Warehouse, statement: CreateView) -> Done:
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS]."""
    now = warehouse.clock.now()
    with warehouse.catalog.read() as tx:
        existing = relations.find(tx, statement.name)
        if existing is not None:
            if statement.if_not_exists:
                return Done(f"view {statement.name} exists already")
            if existing.kind is not Kind.VIEW:
                raise WrongKind(f"{statement.name} is not a view") if statement.or_replace else taken(existing)
            if not statement.or_replace:
                raise taken(existing)
        text = _view_query(statement)
        reading = resolve(warehouse, tx, text).for_columns()
        guard.refuse_cycle(tx, statement.name, existing, reading.relations.values())
    frame = reading.bind(text)
    check_columns(frame.columns)
    lost = [] if existing is None else _lost_columns(warehouse, existing, frame.schema)
    with warehouse.catalog.write() as tx:
        if existing is None:
            view = relations.add(
                tx,
                name=statement.name,
                kind=Kind.VIEW,
                uid=uuid.uuid4().hex,
                query=text.text,
                comment=statement.comment,
                now=now,
            )
        else:
            view = existing
            guard.refuse_following(tx, view, None, f"replace view {view.name}")
            readers = guard.dependents(tx, view)
            if lost and readers:
                guard.protect(tx, view, None, f"replace view {view.name}", warehouse.settings(tx), now)
            relations.update(tx, view.id, now=now, query=text.text, comment=statement.comment)
            guard.mark(tx, readers, now)
        relations.set_dependencies(tx, view.id, _view_dependencies(text, reading))
    return Done(f"view {statement.name} {'replaced' if existing else 'created'}")


def _view_query(statement: CreateView) -> SqlText:
    if not statement.columns:
        return statement.query
    columns = ", ".join(quote(c) for c in statement.columns)
    return query(f"SELECT * FROM ({statement.query.text}\n) AS {quote(statement.name.table)}({columns})")


def _lost_columns(warehouse: Warehouse, view: Relation, schema: StructType) -> list[str]:
    assert view.query is not None
    try:
        before = _bind(warehouse, query(view.query)).schema
    except TrickleError:
        return []  # What no longer runs has nothing to lose.
    return lost_columns(before, schema)


def _view_dependencies(text: SqlText, reading: Reading) -> list[Dependency]:
    return [
        Dependency(0, relation.id, relation.kind, (), None, name in text.tables)
        for name, relation in reading.relations.items()
    ]


def drop_relation(warehouse: Warehouse, statement: Drop) -> Done:
    """DROP TABLE and DROP VIEW."""
    wanted = (Kind.VIEW,) if statement.kind == "view" else (Kind.TABLE, Kind.ATTACHED)
    with warehouse.catalog.read() as tx:
        relation = relations.find(tx, statement.name)
        if relation is None and statement.if_exists:
            return Done(f"{statement.kind} {statement.name} does not exist")
        relation = relation or relations.get(tx, statement.name)
    if relation.kind is Kind.REPLICA:
        raise WrongKind(f"{statement.name} is {relation.kind.words}", hint="CALL trickle.detach(...) lets go of it")
    if relation.kind not in wanted:
        kind = relation.kind.value.replace("_", " ")
        raise WrongKind(f"{statement.name} is not a {statement.kind}", hint=f"DROP {kind} {statement.name}")
    gone = remove(warehouse, relation, cascade=statement.cascade, statement=f"DROP {statement.kind.upper()}")
    return Done("dropped " + ", ".join(str(r.name) for r in gone))


def remove(warehouse: Warehouse, relation: Relation, *, cascade: bool, statement: str) -> list[Relation]:
    """Take a relation out of the catalog, and with ``cascade`` everything above it; then its files."""
    with warehouse.catalog.write() as tx:
        above = _above(tx, relation)
        if not cascade:
            guard.refuse_drop(above, relation, statement)
            guard.refuse_published(tx, relation, statement)
        gone = [*above, relation]
        for each in gone:
            # Of those that read each other, none would be the first to go.
            relations.set_dependencies(tx, each.id, [])
        for each in gone:
            relations.remove(tx, each.id)
        pinning.release(tx)
    for each in gone:
        if each.location is not None and each.kind is not Kind.ATTACHED:
            drop(warehouse.location_of(each))
    return gone


def refuse_removal(warehouse: Warehouse, goes: Sequence[Relation], statement: str) -> None:
    """Refuse before anything is taken out when something else reads one of these."""
    with warehouse.catalog.read() as tx:
        for relation in goes:
            guard.refuse_drop(_above(tx, relation), relation, statement)


def _above(tx: Session, relation: Relation) -> list[Relation]:
    """All readers of a relation, at any distance, the farthest first."""
    found = {relation.id: relation}
    readers: dict[int, list[int]] = {}
    pending = [relation]
    while pending:
        each = pending.pop()
        if each.id not in readers:
            above = guard.dependents(tx, each)
            readers[each.id] = [reader.id for reader in above]
            found |= {reader.id: reader for reader in above}
            pending += above
    return [found[node] for node in order(readers, list(found)) if node != relation.id]


def attach(warehouse: Warehouse, name: TableName, location: Location) -> Snapshot:
    """Register a Delta table that others write."""
    snapshot = open_snapshot(location)
    check_columns(snapshot.schema.names)
    if name.is_system:
        raise InvalidOption(f"{name} is in the system schema", hint="choose another schema")
    with warehouse.catalog.write() as tx:
        relations.add(
            tx,
            name=name,
            kind=Kind.ATTACHED,
            uid=uuid.uuid4().hex,
            location=warehouse.relative(location),
            storage_options=location.storage_options or {},
            now=warehouse.clock.now(),
        )
    return snapshot
