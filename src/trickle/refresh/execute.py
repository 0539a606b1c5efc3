"""One refresh of one unit, from positions to history."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.algebra.names import TableName, quote
from trickle.apply.steps import Step, reached
from trickle.apply.unit import MemberResult, UnitMember, after_success, application_id, commit_unit, recover
from trickle.catalog import history, intents, relations, streams
from trickle.catalog.records import Action, Initiator, Outcome, RefreshMode, StreamTable
from trickle.errors import CatalogUnreachable, SchemaDrift, TrickleError
from trickle.history.failures import RolledBack, close_abandoned, owner, record_failure, under_way
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import overwrite
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stage import discard_stages
from trickle.lake.stages import stages_named
from trickle.refresh.dependencies import dependencies_of
from trickle.refresh.members import Cut, Member, facts_of, is_unfinished, load, require_filled, take_cut
from trickle.refresh.plan import Choice, choose
from trickle.sources.lake import LakePosition
from trickle.tables.reading import Reading
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did."""

    name: str
    action: str
    rows_inserted: int
    rows_deleted: int
    duration_ms: float
    reason: str
    version: int | None
    spark_jobs: int | None


@dataclass(frozen=True)
class _Run:
    """What all members of one refresh share."""

    warehouse: Warehouse
    initiated_by: Initiator
    force: bool
    started: datetime
    stage: str


@dataclass(frozen=True)
class _Work:
    """A member for which the action has been chosen."""

    member: Member
    choice: Choice
    frontier: Mapping[int, LakePosition]

    @property
    def stream(self) -> StreamTable:
        return self.member.stream


@dataclass(frozen=True)
class _Made:
    """A member whose next contents are staged."""

    work: _Work
    refresh_id: int
    snapshot: Snapshot
    prepared: Prepared | None
    spark_jobs: int | None

    @property
    def next_snapshot(self) -> Snapshot:
        if self.prepared is None:
            return self.snapshot
        gone = {file.path for file in self.prepared.removes}
        kept = tuple(file for file in self.snapshot.files if file.path not in gone)
        return replace(
            self.snapshot,
            version=self.snapshot.version + 1,
            schema=self.prepared.schema or self.snapshot.schema,
            files=kept + self.prepared.adds,
        )


def refresh(
    warehouse: Warehouse, names: Iterable[TableName], *, initiated_by: Initiator = Initiator.MANUAL, force: bool = False
) -> list[RefreshResult]:
    """Refresh stream tables as one unit: all of them move, or none."""
    run = _Run(warehouse, initiated_by, force, warehouse.clock.now(), uuid.uuid4().hex)
    wanted = list(dict.fromkeys(names))
    with warehouse.catalog.read() as tx:
        members = load(warehouse, tx, wanted, force=force)
        unfinished = is_unfinished(tx, members)
    if unfinished:
        ids = [member.stream.relation.id for member in members]
        recover(warehouse, ids)
        close_abandoned(warehouse, ids)
        with warehouse.catalog.read() as tx:
            members = load(warehouse, tx, wanted, force=force)
    require_filled(members)
    try:
        cut = take_cut(warehouse, members)
        idle = [_idle(run, member, cut) for member in members]
    except TrickleError as error:
        _record_lost_source(run, members, error)
        raise
    if all(idle):
        return [_record_idle(run, work) for work in idle if work is not None]
    return _refresh_unit(run, members, cut)


def _record_lost_source(run: _Run, members: list[Member], error: TrickleError) -> None:
    """A source that cannot even be looked at is a failed refresh of everything that reads it."""
    for member in members:
        with run.warehouse.catalog.write() as tx:
            refresh_id = history.start(
                tx,
                relation_id=member.stream.relation.id,
                name=str(member.name),
                action=Action.SKIP,
                initiated_by=run.initiated_by,
                now=run.started,
                version_before=member.stream.version,
                details=owner(),
            )
        record_failure(run.warehouse, refresh_id, member.stream.relation.id, error)


def _choose(run: _Run, member: Member, cut: Cut, staged: Mapping[int, Snapshot]) -> _Work:
    facts, frontier = facts_of(run.warehouse, member, cut, staged, force=run.force)
    return _Work(member, choose(facts), frontier)


def _idle(run: _Run, member: Member, cut: Cut) -> _Work | None:
    """The work of a member that has nothing to compute; None for one that has, or that reads another member."""
    if any(source.id not in cut for source in member.reading.tables):
        return None
    work = _choose(run, member, cut, {})
    return work if work.choice.action is Action.NO_DATA else None


def _record_idle(run: _Run, work: _Work) -> RefreshResult:
    """Nothing to compute: a history row, and the frontier where positions moved without a change of rows."""
    stream, now = work.stream, run.warehouse.clock.now()
    with run.warehouse.catalog.write() as tx:
        history.record(
            tx,
            relation_id=stream.relation.id,
            name=str(work.member.name),
            action=work.choice.action,
            status=Outcome.COMPLETED,
            initiated_by=run.initiated_by,
            started_at=run.started,
            ended_at=now,
            version_before=stream.version,
            version_after=stream.version,
            reason=work.choice.reason,
            details={"spark_jobs": 0},
        )
        if work.choice.moves and streams.lock(tx, stream.relation.id).refresh_number == stream.refresh_number:
            streams.set_frontier(tx, stream.relation.id, {s: str(p) for s, p in work.frontier.items()})
        streams.update(
            tx,
            stream.relation.id,
            now=now,
            data_timestamp=run.started,
            last_refresh_at=now,
            status=after_success(stream.status),
            consecutive_errors=0,
        )
    return RefreshResult(
        name=str(work.member.name),
        action=work.choice.action.value,
        rows_inserted=0,
        rows_deleted=0,
        duration_ms=_milliseconds(run.started, now),
        reason=work.choice.reason,
        version=stream.version,
        spark_jobs=0,
    )


def _refresh_unit(run: _Run, members: list[Member], cut: Cut) -> list[RefreshResult]:
    begun: dict[int, Member] = {}
    made: list[_Made] = []
    staged: dict[int, Snapshot] = {}
    with under_way(run.warehouse) as name:
        try:
            for member in members:
                work = _choose(run, member, cut, staged)
                refresh_id = _begin(run, work)
                name(refresh_id)
                begun[refresh_id] = member
                reached(Step.STARTED)
                done = _make(run, work, refresh_id, staged)
                made.append(done)
                staged[member.stream.relation.id] = done.next_snapshot
            commit_unit(run.warehouse, [_unit_member(done, run.started) for done in made])
        except BaseException as error:
            _give_up(run, begun, error)
            raise
    now = run.warehouse.clock.now()
    return [_result(done, _milliseconds(run.started, now)) for done in made]


def _begin(run: _Run, work: _Work) -> int:
    """Enter the refresh in the history, with what tells later whether its process still lives."""
    with run.warehouse.catalog.write() as tx:
        refresh_id = history.start(
            tx,
            relation_id=work.stream.relation.id,
            name=str(work.member.name),
            action=work.choice.action,
            initiated_by=run.initiated_by,
            now=run.started,
            version_before=work.stream.version,
            reason=work.choice.reason,
            details={**owner(), "stage": run.stage},
        )
        if work.choice.action is Action.REINITIALIZE:
            # A view underneath may have been replaced by one that reads something else.
            found = dependencies_of(work.member.query, work.member.reading)
            relations.set_dependencies(tx, work.stream.relation.id, found)
    return refresh_id


def _make(run: _Run, work: _Work, refresh_id: int, staged: Mapping[int, Snapshot]) -> _Made:
    """Compute and stage the next contents."""
    member, engine = work.member, run.warehouse.engine
    location = run.warehouse.location_of(work.stream.relation)
    if work.choice.action is Action.NO_DATA:
        return _Made(work, refresh_id, open_snapshot(location, work.stream.version), None, 0)
    snapshot = open_snapshot(location)
    versions = {source: position.version for source, position in work.frontier.items()}
    reading = replace_sources(member.reading, versions, staged)
    with engine.count_jobs() as count, stages_named(run.stage):
        frame = reading.bind(member.query)
        schema = _next_schema(frame, snapshot, rebuild=work.choice.action is Action.REINITIALIZE, name=member.name)
        visible = frame.select(*[quote(c) for c in (schema or snapshot.schema).names])
        # Consumers see what changed, not that everything was written anew.
        difference = member.has_consumers and schema is None and work.stream.populated
        prepared = overwrite(engine, snapshot, visible, difference=difference, schema=schema)
    return _Made(work, refresh_id, snapshot, None if prepared.is_empty else prepared, count.jobs)


def replace_sources(reading: Reading, versions: Mapping[int, int], staged: Mapping[int, Snapshot]) -> Reading:
    """The same reading, at given versions and over staged tables."""
    return Reading(reading.warehouse, reading.relations, reading.views, reading.pins, versions, staged)


def _next_schema(frame: DataFrame, snapshot: Snapshot, *, rebuild: bool, name: TableName) -> StructType | None:
    """None when the result fits the table; the new schema when the table is being rebuilt."""
    found = relaxed(frame.schema)
    if rebuild and relaxed(snapshot.schema) != found:
        return found
    lost = lost_columns(snapshot.schema, found)
    if lost:
        now = next((f.dataType.simpleString() for f in found.fields if f.name.lower() == lost[0].lower()), "missing")
        raise SchemaDrift(
            f"the query of {name} no longer gives the columns it was created with",
            detail=f"column {lost[0]!r} was {snapshot.schema[lost[0]].dataType.simpleString()} and is now {now}",
            hint=f"CREATE OR REPLACE STREAM TABLE {name} ... or change the source back",
        )
    return None


def _unit_member(made: _Made, started: datetime) -> UnitMember:
    stream, prepared = made.work.stream, made.prepared
    number = stream.refresh_number + 1
    commit = prepared.as_commit(app=(application_id(stream.relation.uid), number)) if prepared is not None else None
    result = MemberResult(
        version=made.next_snapshot.version,
        frontier={source: str(position) for source, position in made.work.frontier.items()},
        action=made.work.choice.action,
        rows_inserted=prepared.inserted if prepared else 0,
        rows_deleted=prepared.deleted if prepared else 0,
        reason=made.work.choice.reason,
        data_timestamp=started,
        effective_mode=RefreshMode.FULL.value,
        details={
            "spark_jobs": made.spark_jobs,
            "files_added": len(prepared.adds) if prepared else 0,
            "files_removed": len(prepared.removes) if prepared else 0,
        },
    )
    return UnitMember(stream.relation.id, number, commit, made.refresh_id, result)


def _give_up(run: _Run, begun: Mapping[int, Member], error: BaseException) -> None:
    """Remove what was staged and close the history rows, unless the intent stands: then the unit will happen."""
    ids = [member.stream.relation.id for member in begun.values()]
    try:
        with run.warehouse.catalog.read() as tx:
            intended = {m.refresh_id for intent in intents.pending(tx, ids) for m in intent.members}
            running = {record.id for record in history.running(tx)} - intended
    except CatalogUnreachable:
        return  # Whether the intent stands is not known: the next process to come will find out.
    failed = list(begun)[-1:]
    for refresh_id, member in begun.items():
        if refresh_id in running:
            discard_stages(run.warehouse.location_of(member.stream.relation), run.stage)
            own = error if refresh_id in failed else RolledBack(str(begun[failed[0]].name))
            record_failure(run.warehouse, refresh_id, member.stream.relation.id, own)


def _result(made: _Made, duration_ms: float) -> RefreshResult:
    return RefreshResult(
        name=str(made.work.member.name),
        action=made.work.choice.action.value,
        rows_inserted=made.prepared.inserted if made.prepared else 0,
        rows_deleted=made.prepared.deleted if made.prepared else 0,
        duration_ms=duration_ms,
        reason=made.work.choice.reason,
        version=made.next_snapshot.version,
        spark_jobs=made.spark_jobs,
    )


def _milliseconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1000
