"""ALTER TABLE: columns come, go and change; what breaks a stream table is refused."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql.types import StructField

from trickle.algebra.names import check_columns, nearest, quote
from trickle.catalog import relations
from trickle.catalog.records import Kind, Relation
from trickle.engine.ddl import parse_ddl
from trickle.errors import InvalidOption, UnknownColumn, WrongKind
from trickle.lake import evolve
from trickle.lake.commit import commit, is_committed
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.sql import (
    AddColumns,
    AlterColumnType,
    AlterTable,
    DropColumns,
    RenameColumn,
    RenameTable,
    SetProperties,
)
from trickle.tables import guard
from trickle.tables.ddl import taken
from trickle.tables.pinning import follow, opened
from trickle.tables.results import Done
from trickle.warehouse import Warehouse


def alter_table(warehouse: Warehouse, statement: AlterTable) -> Done:
    """Run an ALTER TABLE."""
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, statement.name)
    if relation.kind is not Kind.TABLE:
        raise WrongKind(f"{relation.name} is not a base table", detail=f"it is {relation.kind.words}")
    if isinstance(statement.action, RenameTable):
        return _rename_table(warehouse, relation, statement.action)
    # A unit that is under way is ended first: what is committed after it would stay unseen.
    snapshot = opened(warehouse, relation).snapshot
    match statement.action:
        case AddColumns():
            return _add(warehouse, relation, snapshot, statement.action)
        case DropColumns():
            return _drop(warehouse, relation, snapshot, statement.action)
        case RenameColumn():
            return _rename(warehouse, relation, snapshot, statement.action)
        case AlterColumnType():
            return _retype(warehouse, relation, snapshot, statement.action)
        case SetProperties():
            follow(warehouse, relation, evolve.set_properties(snapshot, statement.action.properties))
            return Done(f"properties of {relation.name} set")
    assert_never(statement.action)


def _add(warehouse: Warehouse, relation: Relation, snapshot: Snapshot, action: AddColumns) -> Done:
    fields = []
    for column in action.columns:
        kind = parse_ddl(warehouse.engine, f"{quote(column.name)} {column.type}").fields[0].dataType
        metadata = {"comment": column.comment} if column.comment else None
        fields.append(StructField(column.name, kind, column.nullable, metadata))
    check_columns([*snapshot.schema.names, *(f.name for f in fields)])
    follow(warehouse, relation, evolve.add_columns(snapshot, fields))
    return Done(f"added to {relation.name}: " + ", ".join(f.name for f in fields))


def _drop(warehouse: Warehouse, relation: Relation, snapshot: Snapshot, action: DropColumns) -> Done:
    known = {n.lower() for n in snapshot.schema.names}
    wanted = [n for n in action.names if not (action.if_exists and n.lower() not in known)]
    names = [_column(n, snapshot, relation) for n in wanted]
    if not names:
        return Done(f"{relation.name} has none of these columns")
    if len(names) == len(snapshot.schema.names):
        raise InvalidOption(f"{relation.name} would have no column left", hint=f"DROP TABLE {relation.name}")
    kept = [(n, n) for n in snapshot.schema.names if n not in names]
    prepared = evolve.select_columns(warehouse.engine, snapshot, kept)
    return _rewrite(warehouse, relation, names, prepared, "drop", "dropped " + ", ".join(names))


def _rename(warehouse: Warehouse, relation: Relation, snapshot: Snapshot, action: RenameColumn) -> Done:
    old = _column(action.old, snapshot, relation)
    names = [action.new if n == old else n for n in snapshot.schema.names]
    check_columns(names)
    pairs = list(zip(snapshot.schema.names, names, strict=True))
    prepared = evolve.select_columns(warehouse.engine, snapshot, pairs)
    return _rewrite(warehouse, relation, [old], prepared, "rename", f"renamed {old} to {action.new}")


def _retype(warehouse: Warehouse, relation: Relation, snapshot: Snapshot, action: AlterColumnType) -> Done:
    name = _column(action.column, snapshot, relation)
    wanted = parse_ddl(warehouse.engine, f"{quote(name)} {action.type}").fields[0].dataType
    prepared = evolve.widen(warehouse.engine, snapshot, {name: wanted})
    done = f"{name} is now {wanted.simpleString()}"
    return _rewrite(warehouse, relation, [name], prepared, "change the type of", done)


def _rewrite(
    warehouse: Warehouse, relation: Relation, columns: list[str], prepared: Prepared, verb: str, done: str
) -> Done:
    """Commit a table that was written anew with other columns: a Delta reader needs no column mapping to read it."""
    change = prepared.as_commit()
    try:
        with warehouse.catalog.write() as tx:
            what = f"{verb} column {', '.join(columns)} of {relation.name}"
            guard.protect(tx, relation, columns, what, warehouse.settings(tx), warehouse.clock.now())
        follow(warehouse, relation, commit(change))
    except BaseException:
        # An interruption may come after the commit has landed.
        if is_committed(change) is None:
            prepared.discard()
        raise
    return Done(f"{relation.name}: {done}")


def _rename_table(warehouse: Warehouse, relation: Relation, action: RenameTable) -> Done:
    with warehouse.catalog.write() as tx:
        existing = relations.find(tx, action.new)
        if existing is not None:
            raise taken(existing)
        guard.refuse_rename(guard.dependents(tx, relation), relation)
        relations.update(tx, relation.id, now=warehouse.clock.now(), name=action.new)
    return Done(f"{relation.name} is now {action.new}")


def _column(name: str, snapshot: Snapshot, relation: Relation) -> str:
    """The table's own spelling of a column that may be changed."""
    for known in snapshot.schema.names:
        if known.lower() == name.lower():
            if name.lower() in (k.lower() for k in relation.key):
                raise InvalidOption(f"{known!r} is part of the primary key of {relation.name}")
            return known
    close = nearest(name, snapshot.schema.names)
    raise UnknownColumn(
        f"table {relation.name} has no column {name!r}",
        hint=f"did you mean {close!r}?" if close else "columns: " + ", ".join(snapshot.schema.names),
    )
