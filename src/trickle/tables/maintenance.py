"""Housekeeping: small files written together, dead files removed, old history forgotten."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName, visible
from trickle.apply.unit import PinnedMember, application_id, commit_unit, commits_of, is_decided, recover
from trickle.catalog import alerts, history, intents, jobs, pins, publications, relations, streams, watermarks
from trickle.catalog.records import Kind, Relation
from trickle.changes.between import ChangeBuffer
from trickle.errors import ConcurrentModification, InvalidOption, WrongKind
from trickle.lake.commit import TableCommit, commit
from trickle.lake.compact import compact
from trickle.lake.location import Location
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import latest_version, open_snapshot
from trickle.lake.stages import ahead_of
from trickle.lake.vacuum import vacuum
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse

_PURGE_BATCH = 10_000
_WRITTEN = (Kind.TABLE, Kind.STREAM_TABLE, Kind.REPLICA)
"""What Trickle alone writes."""


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    table: str
    files_before: int
    files_after: int
    version: int


def compact_table(warehouse: Warehouse, name: TableName) -> Compacted:
    """Write a table's small files together. No reader sees a change of rows."""
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
    if not _is_ours(relation):
        raise WrongKind(f"{name} cannot be compacted here", hint="only tables that Trickle writes can")
    snapshot = open_snapshot(warehouse.location_of(relation))
    prepared = compact(warehouse.engine, snapshot)
    before = len(snapshot.files)
    if prepared.is_empty:
        return Compacted(str(name), before, before, snapshot.version)
    version = _commit(warehouse, relation, prepared)
    return Compacted(str(name), before, before - len(prepared.removes) + len(prepared.adds), version)


def _commit(warehouse: Warehouse, relation: Relation, prepared: Prepared) -> int:
    """Commit a compaction and show it to readers; a crash before that leaves them at the older version, an equal one.

    One with a pin is moved by units alone: a commit between a unit's intent and its own commit would make that fail.
    """
    with warehouse.catalog.read() as tx:
        pin = pins.find(tx, relation.id)
    if pin is not None and pin.version != prepared.read_version:
        pin = None
    change = prepared.as_commit(app=None if pin is None else (application_id(relation.uid), pin.number + 1))
    try:
        if pin is None:
            _commit_alone(warehouse, relation, change)
        else:
            commit_unit(warehouse, [PinnedMember(relation.id, pin.number + 1, change, change.version, pin.position)])
    except ConcurrentModification:
        # It may have come after the commit: then the files are the table's.
        recover(warehouse, [relation.id])
        if not is_decided(warehouse, relation.id, change):
            prepared.discard()
            raise
    return change.version


def _commit_alone(warehouse: Warehouse, relation: Relation, change: TableCommit) -> None:
    commit(change)
    if relation.kind is Kind.STREAM_TABLE:
        with warehouse.catalog.write() as tx:
            if streams.lock(tx, relation.id).version == change.read_version:
                streams.update(tx, relation.id, now=warehouse.clock.now(), version=change.version)


def vacuum_tables(warehouse: Warehouse, name: TableName | None, *, dry_run: bool = False) -> list[str]:
    """Remove what nobody needs any more, in one table or in all, and history past its retention."""
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
        wanted = [relations.get(tx, name)] if name is not None else relations.listing(tx)
        work = [(r, _needed(tx, r), _protected(tx, r), _inner(tx, r)) for r in wanted if _is_ours(r)]
    if name is not None and not work:
        raise WrongKind(f"{name} cannot be vacuumed here", hint="only tables that Trickle writes can")
    removed = []
    for relation, keep, protected, inner in work:
        location = warehouse.location_of(relation)
        newest = latest_version(location)
        gone = vacuum(
            location,
            keep_versions=sorted({*keep, newest}),
            retention_hours=settings.vacuum_retention_hours,
            protected_stages=protected,
            dry_run=dry_run,
        )
        removed += [location.child(path).uri for path in gone]
        removed += _vacuum_inner(location, inner, settings.vacuum_retention_hours, protected, dry_run=dry_run)
    if name is None and not dry_run:
        _purge_history(warehouse, settings.history_retention_days)
        _forget_watermarks(warehouse)
    return removed


def _is_ours(relation: Relation) -> bool:
    return relation.kind in _WRITTEN and relation.location is not None


def _inner(tx: Session, relation: Relation) -> dict[str, int]:
    """The inner tables of a stream table, by folder, with the versions that it refers to."""
    if relation.kind is not Kind.STREAM_TABLE:
        return {}
    return dict(streams.by_id(tx, relation.id).state.get("tables", {}))


def _vacuum_inner(
    location: Location, inner: Mapping[str, int], retention_hours: float, protected: Collection[str], *, dry_run: bool
) -> list[str]:
    """The same for the inner tables of a stream table."""
    removed = []
    for folder, version in inner.items():
        place = location.child(*folder.split("/"))
        gone = vacuum(
            place,
            keep_versions=[version],
            retention_hours=retention_hours,
            protected_stages=protected,
            dry_run=dry_run,
        )
        removed += [place.child(path).uri for path in gone]
    return removed


def _needed(tx: Session, relation: Relation) -> set[int]:
    """Versions that readers, publications and the frontiers of consumers still refer to."""
    needed = {one.version for one in publications.listing(tx, [relation.id]) if one.version is not None}
    pinned = _pinned(tx, relation)
    needed |= {pinned} if pinned is not None else set()
    for dependency in relations.dependents(tx, relation.id):
        consumer = relations.by_id(tx, dependency.relation_id)
        if consumer.kind is Kind.STREAM_TABLE:
            stream = streams.by_id(tx, consumer.id)
            # Inner tables may be behind, and catch up from where they stand.
            behind = stream.state["frontier"].get(str(relation.id)) if stream.state.get("tables") else None
            for text in (stream.frontier.get(relation.id), behind):
                if text is not None and LakePosition.parse(text).uid == relation.uid:
                    needed.add(LakePosition.parse(text).version)
    return needed


def _pinned(tx: Session, relation: Relation) -> int | None:
    """The version that readers see, where the catalog says which."""
    if relation.kind is Kind.STREAM_TABLE:
        return streams.by_id(tx, relation.id).version
    pin = pins.find(tx, relation.id)
    return None if pin is None else pin.version


def _protected(tx: Session, relation: Relation) -> set[str]:
    """Stages, or beginnings of their names, of refreshes that are under way or whose intent stands."""
    found = {str(record.details["stage"]) for record in history.running(tx, relation.id) if "stage" in record.details}
    found |= {ahead_of(stage) for stage in found}
    for intent in intents.pending(tx, [relation.id]):
        for member in intent.members:
            if member.relation_id == relation.id:
                for _, written in commits_of(member):
                    found |= written.stage_ids
    return found


def _purge_history(warehouse: Warehouse, days: int) -> None:
    before = warehouse.clock.now() - timedelta(days=days)
    for purge in (history.purge, alerts.purge, jobs.purge):
        while True:
            with warehouse.catalog.write() as tx:
                if purge(tx, before, _PURGE_BATCH) < _PURGE_BATCH:
                    break


def _forget_watermarks(warehouse: Warehouse) -> None:
    """Positions from before the time up to which all sources with a watermark are complete: nobody asks for them."""
    with warehouse.catalog.write() as tx:
        known = watermarks.listing(tx)
        for one in known:
            watermarks.forget(tx, one.source_id, min(other.watermark for other in known))


def changes(warehouse: Warehouse, name: TableName, since: int, until: int | None = None) -> DataFrame:
    """The net change of a table after one version up to another, the newest that readers see by default."""
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        pinned = _pinned(tx, relation)
    if relation.kind is Kind.VIEW:
        raise WrongKind(f"{name} is a view and has no versions", hint="ask for the changes of the tables it reads")
    if relation.location is None:
        raise WrongKind(f"{name} lives in PostgreSQL and has no versions")
    location = warehouse.location_of(relation)
    newest = pinned if pinned is not None else latest_version(location)
    upto = newest if until is None else until
    if not 0 <= since <= upto <= newest:
        raise InvalidOption(
            f"{name} has no changes from version {since} to {upto}", detail=f"it has the versions 0 to {newest}"
        )
    span = ChangeBuffer(location, LakePosition(relation.uid, since), LakePosition(relation.uid, upto))
    columns = visible(open_snapshot(location, upto).schema.names)
    return span.rows(warehouse.engine, columns if pinned is not None else None)
