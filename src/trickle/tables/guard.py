"""DDL on what others are built on: refused, or the stream tables above are marked to be rebuilt."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import publications, relations, streams
from trickle.catalog.records import Kind, RefreshMode, Relation
from trickle.dag.graph import path
from trickle.errors import CycleError, DependentsExist
from trickle.settings import Settings


def dependents(tx: Session, relation: Relation, columns: Collection[str] | None = None) -> list[Relation]:
    """The views and stream tables that read a relation, or some of its columns."""
    wanted = None if columns is None else {c.lower() for c in columns}
    found: dict[int, Relation] = {}
    for dependency in relations.dependents(tx, relation.id):
        reader = relations.by_id(tx, dependency.relation_id)
        if wanted is None or wanted.intersection(c.lower() for c in dependency.columns):
            found[reader.id] = reader
    return sorted(found.values(), key=lambda r: r.name)


def protect(
    tx: Session, relation: Relation, columns: Collection[str] | None, what: str, settings: Settings, now: datetime
) -> None:
    """Refuse DDL that breaks a stream table, or mark the stream tables when the setting allows it."""
    refuse_following(tx, relation, columns, what)
    broken = dependents(tx, relation, columns)
    if not broken:
        return
    if settings.block_source_ddl:
        raise DependentsExist(
            f"cannot {what}: {_depend(broken)} on it",
            hint="SET trickle.block_source_ddl = off, and the stream tables are rebuilt at their next refresh",
        )
    mark(tx, broken, now)


def refuse_following(tx: Session, relation: Relation, columns: Collection[str] | None, what: str) -> None:
    """Refuse DDL under IMMEDIATE stream tables: they change by statements on rows, and cannot wait to be rebuilt."""
    following = [
        reader
        for reader in dependents(tx, relation, columns)
        if reader.kind is Kind.STREAM_TABLE and streams.by_id(tx, reader.id).refresh_mode is RefreshMode.IMMEDIATE
    ]
    if following:
        raise DependentsExist(
            f"cannot {what}: IMMEDIATE {_depend(following)} on it",
            hint=f"ALTER STREAM TABLE {following[0].name} SET (refresh_mode = 'AUTO') first",
        )


def mark(tx: Session, readers: Collection[Relation], now: datetime) -> None:
    """Have stream tables rebuilt at their next refresh."""
    for reader in readers:
        if reader.kind is Kind.STREAM_TABLE:
            if reader.location is None:
                raise DependentsExist(
                    f"stream table {reader.name} reads it and lives in PostgreSQL",
                    detail="it was compiled there for what it reads as that was",
                    hint=f"drop {reader.name}, and make it again afterwards",
                )
            # A refresh that began before this must not commit after it: its number is taken.
            number = streams.lock(tx, reader.id).refresh_number + 1
            streams.update(tx, reader.id, now=now, needs_reinitialize=True, refresh_number=number)


def refuse_drop(broken: Collection[Relation], relation: Relation, statement: str) -> None:
    """Refuse to drop what others are built on."""
    if broken:
        raise DependentsExist(
            f"cannot drop {relation.name}: {_depend(broken)} on it",
            hint=f"{statement} {relation.name} CASCADE drops them too",
        )


def refuse_published(tx: Session, relation: Relation, statement: str) -> None:
    """Refuse to drop what is kept in a PostgreSQL database too."""
    found = publications.listing(tx, [relation.id])
    if found:
        raise DependentsExist(
            f"cannot drop {relation.name}: it is published to {found[0].schema}.{found[0].table}",
            hint=f"CALL trickle.unpublish(...) first; {statement} {relation.name} CASCADE leaves that table as it is",
        )


def refuse_rename(broken: Collection[Relation], relation: Relation) -> None:
    """Refuse to rename what the queries of others name."""
    if broken:
        raise DependentsExist(
            f"cannot rename {relation.name}: {_depend(broken)} on it",
            hint="drop them, rename the table, and create them again",
        )


def refuse_cycle(tx: Session, name: TableName, own: Relation | None, sources: Iterable[Relation]) -> None:
    """Refuse a query that would make a view or stream table read itself, directly or through others."""
    if own is None:
        return  # What does not exist yet is read by nobody.
    reads: dict[int, list[int]] = {}
    for dependency in relations.all_dependencies(tx):
        if dependency.direct:
            reads.setdefault(dependency.relation_id, []).append(dependency.source_id)
    for source in sources:
        way = path(reads, source.id, own.id)
        if way is not None:
            names = [str(name), *(str(relations.by_id(tx, node).name) for node in way)]
            raise CycleError(f"{name} would depend on itself", detail=" -> ".join(names))


def _depend(readers: Collection[Relation]) -> str:
    named = ", ".join(f"{_word(reader)} {reader.name}" for reader in readers)
    return f"{named} {'depends' if len(readers) == 1 else 'depend'}"


def _word(relation: Relation) -> str:
    return {Kind.VIEW: "view", Kind.STREAM_TABLE: "stream table"}.get(relation.kind, "table")
