"""Base tables that IMMEDIATE stream tables follow: they have a pin, which moves with those stream tables in one unit.

A table gets its pin in the transaction that makes the first stream table IMMEDIATE over it, and loses it with the last
one. Whoever makes a stream table follow a pinned table takes the next number of the pin: a statement that did not know
of the stream table can then no longer be committed, and begins again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.apply.unit import application_id, recover
from trickle.catalog import intents, pins, relations, streams
from trickle.catalog.records import Kind, Pin, RefreshMode, Relation
from trickle.errors import ConcurrentModification, CorruptTable, ForeignWrite, HistoryLost
from trickle.lake.changes import count_changes
from trickle.lake.commit import INFO_KEY, open_table
from trickle.lake.location import Location
from trickle.lake.log import read_commits
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.warehouse import Warehouse

_LOOKS = 100
"""How often a table is looked at that others change meanwhile."""


@dataclass(frozen=True)
class Standing:
    """Where a table stands before it is pinned."""

    uid: str
    """Of the incarnation that was looked at."""
    version: int
    number: int
    """Of the last unit that moved it, where it was pinned before: the log remembers it."""


@dataclass(frozen=True)
class Target:
    """A table that a statement is about to change, as it stands."""

    relation: Relation
    snapshot: Snapshot
    pin: Pin | None


def standing(warehouse: Warehouse, table: Relation) -> Standing:
    """Where a table stands, to be pinned there."""
    log = open_table(warehouse.location_of(table))
    return Standing(table.uid, log.version(), log.transaction_version(application_id(table.uid)) or 0)


def pin(tx: Session, tables: Mapping[int, Standing], now: datetime) -> None:
    """Pin tables where they stand; of those that have a pin, take the next number."""
    for relation_id, found in sorted(tables.items()):
        table = relations.lock(tx, relation_id)
        if table.uid != found.uid:
            raise ConcurrentModification(f"{table.name} was replaced by another session", hint="try again")
        if pins.find(tx, relation_id) is None:
            pins.add(tx, relation_id, now, version=found.version, number=found.number)
        else:
            held = pins.lock(tx, relation_id)
            pins.move(tx, relation_id, version=held.version, number=held.number + 1, position=held.position, now=now)


def release(tx: Session) -> None:
    """Take the pins off base tables that no IMMEDIATE stream table reads any more."""
    held = pins.of(tx)
    if not held:
        return
    following = immediate_ids(tx)
    read = {d.source_id for d in relations.all_dependencies(tx) if d.relation_id in following}
    pinned = {relation.id for relation in relations.listing(tx) if relation.id in held and relation.kind is Kind.TABLE}
    for relation_id in sorted(pinned - read):
        pins.lock(tx, relation_id)
        if intents.pending(tx, [relation_id]):
            name = relations.by_id(tx, relation_id).name
            raise ConcurrentModification(f"{name} is being committed", hint="try again in a moment")
        pins.remove(tx, relation_id)


def immediate_ids(tx: Session) -> set[int]:
    """The stream tables that are IMMEDIATE."""
    return {table.id for table in streams.schedulable(tx) if table.refresh_mode is RefreshMode.IMMEDIATE}


def followers(tx: Session, tables: Iterable[int]) -> list[Relation]:
    """The IMMEDIATE stream tables that follow tables, directly or through others of their kind."""
    following = immediate_ids(tx)
    readers: dict[int, set[int]] = {}
    for dependency in relations.all_dependencies(tx):
        if dependency.relation_id in following:
            readers.setdefault(dependency.source_id, set()).add(dependency.relation_id)
    found: set[int] = set()
    pending = list(tables)
    while pending:
        news = readers.get(pending.pop(), set()) - found
        found |= news
        pending += news
    return [relations.by_id(tx, each) for each in sorted(found)]


def opened(warehouse: Warehouse, table: Relation) -> Target:
    """A table as a statement finds it; one with a pin stands there, or a commit without rows further.

    ForeignWrite when somebody else has written into a table with a pin.
    """
    location = warehouse.location_of(table)
    for _ in range(_LOOKS):
        snapshot = open_snapshot(location)
        # In this order: what the log has and the catalog does not know then, no unit of ours has written.
        with warehouse.catalog.read() as tx:
            found = pins.find(tx, table.id)
            unfinished = found is not None and bool(intents.pending(tx, [table.id]))
            readers = followers(tx, [table.id]) if found is not None else []
        if found is None or found.version is None:
            return Target(table, snapshot, None)
        shown = found.version
        if unfinished:
            recover(warehouse, [table.id])
        elif found.version <= snapshot.version:
            if is_equal(location, found.version, snapshot.version):
                return Target(table, snapshot, found)
            if not _is_ours(location, found.version, snapshot.version) or warehouse.immediate is None:
                raise _foreign(table, found.version, snapshot.version, readers)
            # A statement that began before the table was pinned.
            warehouse.immediate.catch_up(warehouse, table)
    if shown > snapshot.version:
        raise CorruptTable(
            f"the log of {table.name} ends before the version that readers see",
            detail=f"{location.uri} is at version {snapshot.version}, readers are shown version {shown}",
        )
    raise ConcurrentModification(f"{table.name} is being changed by others all the time", hint="try again")


def is_equal(location: Location, old: int, new: int) -> bool:
    """Whether two versions of a table have the same rows, as far as the log tells."""
    if old == new:
        return True
    try:
        count = count_changes(location, old, new)
    except HistoryLost:
        return False
    return count.exact and count.inserted == 0 and count.deleted == 0


def _is_ours(location: Location, old: int, new: int) -> bool:
    try:
        return all(INFO_KEY in commit.info for commit in read_commits(location, old, new))
    except HistoryLost:
        return False


def _foreign(table: Relation, pinned: int, newest: int, readers: Iterable[Relation]) -> ForeignWrite:
    reader = next((str(relation.name) for relation in readers), "...")
    return ForeignWrite(
        f"somebody else wrote into {table.name}, which IMMEDIATE stream tables follow",
        detail=f"its log is at version {newest}; statements through Trickle brought it to version {pinned}, which "
        "readers see",
        hint=f"REFRESH STREAM TABLE {reader} takes these rows in",
    )


def follow(warehouse: Warehouse, table: Relation, after: int) -> None:
    """Show readers a version that was committed without a change of rows, where they see the same rows."""
    location = warehouse.location_of(table)
    with warehouse.catalog.write() as tx:
        if pins.find(tx, table.id) is None:
            return
        held = pins.lock(tx, table.id)
        if held.version is not None and held.version < after and is_equal(location, held.version, after):
            now = warehouse.clock.now()
            pins.move(tx, table.id, version=after, number=held.number + 1, position=held.position, now=now)
