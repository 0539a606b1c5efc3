"""The members of a unit before their refresh: definition, sources, and where the sources stand.

The positions of all sources are taken once for the whole unit (the cut). A member that reads another member sees its
staged next version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import history, intents, publications, relations, streams
from trickle.catalog.records import Action, Kind, Outcome, RefreshMode, RefreshRecord, Relation, Status, StreamTable
from trickle.changes.between import ChangeBuffer
from trickle.dag.graph import order
from trickle.errors import Suspended, UserError, WrongKind
from trickle.lake.changes import ChangeCount
from trickle.lake.snapshot import Snapshot
from trickle.refresh.cost import REMEMBERED, Sample
from trickle.refresh.plan import Facts, Keeping, SourceFact
from trickle.refresh.state import State, why_not
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
        if stream.relation.location is None:
            raise WrongKind(
                f"stream table {stream.relation.name} lives in PostgreSQL",
                detail="it changes in the transaction that changes its sources, and is not refreshed from here",
            )
        if stream.status is Status.SUSPENDED and not force:
            raise Suspended(
                f"stream table {stream.relation.name} is suspended",
                detail=stream.last_error,
                hint=f"ALTER STREAM TABLE {stream.relation.name} RESUME",
            )
    depth = warehouse.settings(tx).max_parse_depth
    return [_member(warehouse, tx, stream, depth) for stream in _ordered(tx, found)]


def member_of(warehouse: Warehouse, relation_id: int) -> Member:
    """One stream table, also when it is suspended."""
    with warehouse.catalog.read() as tx:
        return load(warehouse, tx, [relations.by_id(tx, relation_id).name], force=True)[0]


def _ordered(tx: Session, found: list[StreamTable]) -> list[StreamTable]:
    if len(found) < 2:
        return found
    reads: dict[int, set[int]] = {}
    for dependency in relations.all_dependencies(tx):
        reads.setdefault(dependency.relation_id, set()).add(dependency.source_id)
    by_id = {stream.relation.id: stream for stream in found}
    return [by_id[relation_id] for relation_id in order(reads, list(by_id))]


def _member(warehouse: Warehouse, tx: Session, stream: StreamTable, depth: int) -> Member:
    text = parsed(stream.text, depth)
    reading = resolve(warehouse, tx, text)
    read = {r.id: streams.by_id(tx, r.id) for r in reading.tables if r.kind is Kind.STREAM_TABLE}
    consumers = bool(relations.dependents(tx, stream.relation.id)) or publications.are_there(tx, stream.relation.id)
    return Member(stream, text, reading, read, has_consumers=consumers)


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

    @property
    def change(self) -> ChangeCount | None:
        """How many rows change, where that is known before they are read."""
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


def take_cut(
    warehouse: Warehouse,
    members: Sequence[Member],
    given: Cut | None = None,
    caps: Mapping[int, LakePosition | None] | None = None,
) -> Cut:
    """Where every source of the unit stands, taken once: as the tick found it where it did, and not beyond the caps."""
    own = {member.stream.relation.id for member in members}
    cut: dict[int, LakePosition] = {}
    for member in members:
        for source in member.reading.tables:
            if source.id in cut or source.id in own:
                continue
            known = _frontier(member, source)
            now = (given or {}).get(source.id) or current(
                source, warehouse.location_of(source), member.reading.pins.get(source.id), known
            )
            cut[source.id] = capped(now, known, source.id, caps or {})
    return cut


def capped(
    now: LakePosition, known: LakePosition | None, source: int, caps: Mapping[int, LakePosition | None]
) -> LakePosition:
    """A position, held back to what is complete; never behind what was read already."""
    if source not in caps:
        return now
    cap = caps[source]
    if cap is None or cap.uid != now.uid:
        return known or now
    held = min(now, cap, key=lambda position: position.version)
    return known if known is not None and known.uid == held.uid and known.version > held.version else held


def facts_of(
    warehouse: Warehouse, member: Member, cut: Cut, staged: Mapping[int, StagedSource], *, force: bool
) -> tuple[Facts, dict[int, LakePosition]]:
    """What the choice of action depends on, and the frontier that the refresh would reach."""
    facts: dict[int, SourceFact] = {}
    frontier: dict[int, LakePosition] = {}
    for source in member.reading.tables:
        if source.id in staged:
            now = LakePosition(source.uid, staged[source.id].next.version)
            known = staged[source.id].change or ChangeCount(None, None, exact=False)
        else:
            now = cut[source.id]
            known = _changed_rows(warehouse, member, source, now)
        before = _frontier(member, source)
        frontier[source.id] = now
        facts[source.id] = _source_fact(source, before, now, known)
    stream = member.stream
    dropped = set(stream.frontier) - set(frontier)
    return (
        Facts(
            populated=stream.populated,
            needs_reinitialize=stream.needs_reinitialize or bool(dropped),
            always_refresh=stream.always_refresh or any(v.is_unsteady for v in member.reading.views.values()),
            force=force,
            sources=facts,
        ),
        frontier,
    )


def _frontier(member: Member, source: Relation) -> LakePosition | None:
    text = member.stream.frontier.get(source.id)
    return None if text is None else LakePosition.parse(text)


def _changed_rows(warehouse: Warehouse, member: Member, source: Relation, now: LakePosition) -> ChangeCount:
    before = _frontier(member, source)
    if before is None:
        return ChangeCount(None, None, exact=False)
    if before == now:
        return ChangeCount(0, 0, exact=True)
    return ChangeBuffer(warehouse.location_of(source), before, now).count()


def _source_fact(source: Relation, before: LakePosition | None, now: LakePosition, known: ChangeCount) -> SourceFact:
    counted = None if known.inserted is None or known.deleted is None else known.inserted + known.deleted
    return SourceFact(
        name=str(source.name),
        before=None if before is None else str(before),
        now=str(now),
        changed_rows=counted if known.exact else None,
        counted_rows=counted,
        inserted=known.inserted,
        deleted=known.deleted,
    )


def weighed(warehouse: Warehouse, member: Member, facts: Facts, sources: Mapping[int, Snapshot]) -> Facts:
    """The facts with what the choice between a refresh by changes and a full one depends on.

    ``sources`` are the versions to be read. Asked only when something changed: it reads the history.
    """
    stream = member.stream
    state = State.of(stream)
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
        past = _past(tx, stream.relation.id) if stream.refresh_mode is RefreshMode.AUTO else []
    threshold = stream.options.get("auto_threshold", settings.differential_max_change_ratio)
    known = all(source in stream.frontier for source in facts.sources)
    cycles = settings.algebraic_drift_reset_cycles
    keeping = Keeping(
        mode=stream.refresh_mode,
        is_kept=state is not None and known,
        why_not=why_not(stream) or "SOURCES_CHANGED: it reads a source that it did not read before",
        max_ratio=float(threshold) if isinstance(threshold, int | float) else settings.differential_max_change_ratio,
        samples=[sample for record in past if (sample := _sample(record)) is not None],
        is_behind=state is not None and bool(state.tables) and dict(state.frontier) != dict(stream.frontier),
        drift_due=state is not None and 0 < cycles <= state.added,
    )
    rows = {source: sum(file.live_rows or 0 for file in snapshot.files) for source, snapshot in sources.items()}
    counted = {s: replace(fact, source_rows=rows.get(s, 0)) for s, fact in facts.sources.items()}
    return replace(facts, keeping=keeping, sources=counted)


def _past(tx: Session, relation_id: int) -> list[RefreshRecord]:
    """The latest refreshes that computed something, and the latest full one where all of these went by changes."""
    past = history.recent(tx, relation_id, REMEMBERED, (Action.FULL, Action.DIFFERENTIAL))
    if any(record.action is Action.FULL for record in past):
        return past
    return past + history.recent(tx, relation_id, 1, (Action.FULL,))


def _sample(record: RefreshRecord) -> Sample | None:
    changed, total = record.details.get("changed_rows"), record.details.get("source_rows")
    done = record.status is Outcome.COMPLETED and record.duration_ms is not None
    if not done or not isinstance(total, int) or not total or record.action not in (Action.FULL, Action.DIFFERENTIAL):
        return None
    by_changes = record.action is Action.DIFFERENTIAL
    if by_changes and not isinstance(changed, int):
        return None
    # What refreshes in full left to be done is not what a refresh by changes takes.
    caught_up = record.details.get("caught_up_ms")
    took = (record.duration_ms or 0.0) - (caught_up if isinstance(caught_up, int | float) else 0.0)
    return Sample(by_changes, max(took, 0.0), changed if isinstance(changed, int) else 0, total)
