"""The members of a unit before their refresh: definition, sources, and where the sources stand.

The positions of all sources are taken once for the whole unit (the cut). A member that reads another member sees its
staged next version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import history, intents, relations, streams
from trickle.catalog.records import Kind, Relation, Status, StreamTable
from trickle.changes.between import ChangeBuffer
from trickle.dag.graph import order
from trickle.errors import Suspended, UserError
from trickle.lake.snapshot import Snapshot
from trickle.refresh.plan import Facts, SourceFact
from trickle.refresh.state import State
from trickle.sources.lake import LakePosition, current
from trickle.sql import Query
from trickle.tables.reading import Reading, parsed, resolve
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class Member:
    """A stream table that is about to be refreshed."""

    stream: StreamTable
    query: Query
    reading: Reading
    streams_read: Mapping[int, StreamTable]
    has_consumers: bool

    @property
    def name(self) -> TableName:
        return self.stream.relation.name


def load(warehouse: Warehouse, tx: Session, names: Iterable[TableName], *, force: bool) -> list[Member]:
    """The members of a unit, each after those it reads."""
    found = [streams.get(tx, name) for name in names]
    for stream in found:
        if stream.status is Status.SUSPENDED and not force:
            raise Suspended(
                f"stream table {stream.relation.name} is suspended",
                detail=stream.last_error,
                hint=f"ALTER STREAM TABLE {stream.relation.name} RESUME",
            )
    depth = warehouse.settings(tx).max_parse_depth
    return [_member(warehouse, tx, stream, depth) for stream in _ordered(tx, found)]


def _ordered(tx: Session, found: list[StreamTable]) -> list[StreamTable]:
    if len(found) < 2:
        return found
    reads: dict[int, set[int]] = {}
    for dependency in relations.all_dependencies(tx):
        reads.setdefault(dependency.relation_id, set()).add(dependency.source_id)
    by_id = {stream.relation.id: stream for stream in found}
    return [by_id[relation_id] for relation_id in order(reads, list(by_id))]


def _member(warehouse: Warehouse, tx: Session, stream: StreamTable, depth: int) -> Member:
    text = parsed(stream.query, depth)
    reading = resolve(warehouse, tx, text)
    read = {r.id: streams.by_id(tx, r.id) for r in reading.tables if r.kind is Kind.STREAM_TABLE}
    consumers = relations.dependents(tx, stream.relation.id)
    return Member(stream, text, reading, read, has_consumers=bool(consumers))


def is_unfinished(tx: Session, members: Sequence[Member]) -> bool:
    """Whether a refresh of a member has begun and not ended: under way elsewhere, or left by a process that died."""
    ids = [member.stream.relation.id for member in members]
    return bool(intents.pending(tx, ids)) or any(history.running(tx, relation_id) for relation_id in ids)


Cut = Mapping[int, LakePosition]


class StagedSource(Protocol):
    """A source that is refreshed by the same unit."""

    @property
    def next(self) -> Snapshot:
        """Its contents to come."""
        ...


def require_filled(members: Sequence[Member]) -> None:
    """Refuse a member that reads a stream table without contents, unless that is filled in the same unit."""
    own = {member.stream.relation.id for member in members}
    for member in members:
        for relation_id, stream in member.streams_read.items():
            if stream.version is None and relation_id not in own:
                raise UserError(
                    f"stream table {member.name} reads {stream.relation.name}, which has not been filled yet",
                    hint=f"REFRESH STREAM TABLE {stream.relation.name}",
                )


def take_cut(warehouse: Warehouse, members: Sequence[Member]) -> Cut:
    """Where every source of the unit stands, taken once."""
    own = {member.stream.relation.id for member in members}
    cut: dict[int, LakePosition] = {}
    for member in members:
        for source in member.reading.tables:
            if source.id in cut or source.id in own:
                continue
            known = _frontier(member, source)
            cut[source.id] = current(source, warehouse.location_of(source), member.streams_read.get(source.id), known)
    return cut


def facts_of(
    warehouse: Warehouse, member: Member, cut: Cut, staged: Mapping[int, StagedSource], *, force: bool
) -> tuple[Facts, dict[int, LakePosition]]:
    """What the choice of action depends on, and the frontier that the refresh would reach."""
    facts: dict[int, SourceFact] = {}
    frontier: dict[int, LakePosition] = {}
    befores: list[LakePosition | None] = []
    for source in member.reading.tables:
        if source.id in staged:
            now = LakePosition(source.uid, staged[source.id].next.version)
            rows = None
        else:
            now = cut[source.id]
            rows = _changed_rows(warehouse, member, source, now)
        before = _frontier(member, source)
        befores.append(before)
        frontier[source.id] = now
        facts[source.id] = SourceFact(str(source.name), None if before is None else str(before), str(now), rows)
    stream = member.stream
    dropped = set(stream.frontier) - set(frontier)
    return (
        Facts(
            populated=stream.populated,
            needs_reinitialize=stream.needs_reinitialize or bool(dropped),
            always_refresh=stream.always_refresh or any(v.is_unsteady for v in member.reading.views.values()),
            force=force,
            mode=stream.refresh_mode,
            is_kept=State.of(stream) is not None and all(position is not None for position in befores),
            sources=facts,
        ),
        frontier,
    )


def _frontier(member: Member, source: Relation) -> LakePosition | None:
    text = member.stream.frontier.get(source.id)
    return None if text is None else LakePosition.parse(text)


def _changed_rows(warehouse: Warehouse, member: Member, source: Relation, now: LakePosition) -> int | None:
    before = _frontier(member, source)
    if before is None:
        return None
    if before == now:
        return 0
    return ChangeBuffer(warehouse.location_of(source), before, now).known_rows()
