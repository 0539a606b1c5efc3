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
from trickle.apply.unit import MemberResult, UnitMember, application_id, commit_unit, recover
from trickle.catalog import history, intents, streams
from trickle.catalog.records import Action, Initiator, Outcome, RefreshMode
from trickle.errors import CatalogUnreachable, SchemaDrift
from trickle.history.failures import RolledBack, owner, record_failure
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import overwrite
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stage import discard_stages
from trickle.lake.stages import stages_named
from trickle.refresh.members import Cut, Member, facts_of, load, take_cut
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
class _Work:
    """A member whose refresh has been chosen."""

    member: Member
    choice: Choice
    frontier: Mapping[int, LakePosition]
    refresh_id: int
    stage: str


@dataclass(frozen=True)
class _Made:
    """A member whose next contents are staged."""

    work: _Work
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
    started = warehouse.clock.now()
    wanted = list(dict.fromkeys(names))
    with warehouse.catalog.read() as tx:
        members = load(warehouse, tx, wanted, force=force)
    if recover(warehouse, [m.stream.relation.id for m in members]):
        with warehouse.catalog.read() as tx:
            members = load(warehouse, tx, wanted, force=force)
    cut = take_cut(warehouse, members)
    idle = [_idle(warehouse, member, cut, force) for member in members]
    if all(idle):
        return [_record_idle(warehouse, m, i, initiated_by, started) for m, i in zip(members, idle, strict=True) if i]
    return _refresh_unit(warehouse, members, cut, initiated_by, started, force)


def _idle(
    warehouse: Warehouse, member: Member, cut: Cut, force: bool
) -> tuple[Choice, Mapping[int, LakePosition]] | None:
    """The choice and frontier of a member that has nothing to compute; None for one that has or may have."""
    if any(source.id not in cut for source in member.reading.tables):
        return None
    facts, frontier = facts_of(warehouse, member, cut, {}, force=force)
    choice = choose(facts)
    return (choice, frontier) if choice.action is Action.NO_DATA else None


def _record_idle(
    warehouse: Warehouse,
    member: Member,
    idle: tuple[Choice, Mapping[int, LakePosition]],
    initiated_by: Initiator,
    started: datetime,
) -> RefreshResult:
    """Nothing to compute: a history row, and the frontier where positions moved without a change of rows."""
    choice, frontier = idle
    stream, now = member.stream, warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        history.record(
            tx,
            relation_id=stream.relation.id,
            name=str(member.name),
            action=choice.action,
            status=Outcome.COMPLETED,
            initiated_by=initiated_by,
            started_at=started,
            ended_at=now,
            rows_inserted=0,
            rows_deleted=0,
            version_before=stream.version,
            version_after=stream.version,
            reason=choice.reason,
            details={"spark_jobs": 0},
        )
        if choice.moves and streams.lock(tx, stream.relation.id).refresh_number == stream.refresh_number:
            streams.set_frontier(tx, stream.relation.id, {s: str(p) for s, p in frontier.items()})
        streams.update(tx, stream.relation.id, now=now, data_timestamp=started, last_refresh_at=now)
    return _result(stream.relation.name, choice, 0, 0, started, now, stream.version, 0)


def _refresh_unit(
    warehouse: Warehouse,
    members: list[Member],
    cut: Cut,
    initiated_by: Initiator,
    started: datetime,
    force: bool,
) -> list[RefreshResult]:
    stage = uuid.uuid4().hex
    works: list[_Work] = []
    made: list[_Made] = []
    staged: dict[int, Snapshot] = {}
    try:
        for member in members:
            work = _begin(warehouse, member, cut, staged, initiated_by, started, stage, force)
            works.append(work)
            done = _make(warehouse, work, staged)
            made.append(done)
            staged[member.stream.relation.id] = done.next_snapshot
        commit_unit(warehouse, [_unit_member(m, started) for m in made])
    except BaseException as error:
        _give_up(warehouse, works, error)
        raise
    now = warehouse.clock.now()
    return [
        _result(
            m.work.member.name,
            m.work.choice,
            m.prepared.inserted if m.prepared else 0,
            m.prepared.deleted if m.prepared else 0,
            started,
            now,
            m.next_snapshot.version,
            m.spark_jobs,
        )
        for m in made
    ]


def _begin(
    warehouse: Warehouse,
    member: Member,
    cut: Cut,
    staged: Mapping[int, Snapshot],
    initiated_by: Initiator,
    started: datetime,
    stage: str,
    force: bool,
) -> _Work:
    facts, frontier = facts_of(warehouse, member, cut, staged, force=force)
    choice = choose(facts)
    with warehouse.catalog.write() as tx:
        refresh_id = history.start(
            tx,
            relation_id=member.stream.relation.id,
            name=str(member.name),
            action=choice.action,
            initiated_by=initiated_by,
            now=started,
            version_before=member.stream.version,
            reason=choice.reason,
            details={**owner(), "stage": stage},
        )
    reached(Step.STARTED)
    return _Work(member, choice, frontier, refresh_id, stage)


def _make(warehouse: Warehouse, work: _Work, staged: Mapping[int, Snapshot]) -> _Made:
    """Compute and stage the next contents."""
    member, stream = work.member, work.member.stream
    location = warehouse.location_of(stream.relation)
    snapshot = open_snapshot(location)
    if work.choice.action is Action.NO_DATA:
        return _Made(work, snapshot, None, 0)
    versions = {source: position.version for source, position in work.frontier.items()}
    reading = replace_sources(member.reading, versions, staged)
    with warehouse.engine.count_jobs() as count:
        frame = reading.bind(member.query)
        schema = _next_schema(frame, snapshot, rebuild=work.choice.action is Action.REINITIALIZE, name=member.name)
        visible = frame.select(*[quote(c) for c in (schema or snapshot.schema).names])
        with stages_named(work.stage):
            prepared = overwrite(
                warehouse.engine,
                snapshot,
                visible,
                difference=member.has_consumers and schema is None and stream.populated,
                schema=schema,
            )
    return _Made(work, snapshot, None if prepared.is_empty else prepared, count.jobs)


def replace_sources(reading: Reading, versions: Mapping[int, int], staged: Mapping[int, Snapshot]) -> Reading:
    """The same reading, at given versions and over staged tables."""
    return Reading(reading.warehouse, reading.relations, reading.views, reading.pins, versions, staged)


def _next_schema(frame: DataFrame, snapshot: Snapshot, *, rebuild: bool, name: TableName) -> StructType | None:
    """None when the result fits the table; the new schema when the table is being rebuilt."""
    stored = {field.name.lower(): field.dataType for field in snapshot.schema.fields}
    found = {field.name.lower(): field.dataType for field in frame.schema.fields}
    if rebuild and list(found.items()) != list(stored.items()):
        return frame.schema
    wrong = [column for column, kind in stored.items() if found.get(column) != kind]
    if wrong:
        column = wrong[0]
        now = found[column].simpleString() if column in found else "missing"
        raise SchemaDrift(
            f"the query of {name} no longer gives the columns it was created with",
            detail=f"column {column!r} was {stored[column].simpleString()} and is now {now}",
            hint=f"CREATE OR REPLACE STREAM TABLE {name} ... or change the source back",
        )
    return None


def _unit_member(made: _Made, started: datetime) -> UnitMember:
    work, stream = made.work, made.work.member.stream
    number = stream.refresh_number + 1
    commit = None
    if made.prepared is not None:
        commit = made.prepared.as_commit(app=(application_id(stream.relation.uid), number))
    result = MemberResult(
        version=made.next_snapshot.version,
        frontier={source: str(position) for source, position in work.frontier.items()},
        action=work.choice.action,
        rows_inserted=made.prepared.inserted if made.prepared else 0,
        rows_deleted=made.prepared.deleted if made.prepared else 0,
        reason=work.choice.reason,
        data_timestamp=started,
        effective_mode=RefreshMode.FULL.value,
        details={
            "spark_jobs": made.spark_jobs,
            "files_added": len(made.prepared.adds) if made.prepared else 0,
            "files_removed": len(made.prepared.removes) if made.prepared else 0,
        },
    )
    return UnitMember(stream.relation.id, number, commit, work.refresh_id, result)


def _give_up(warehouse: Warehouse, works: list[_Work], error: BaseException) -> None:
    """Remove what was staged and close the history rows, unless the intent stands: then the unit will happen."""
    if not works:
        return
    ids = [work.member.stream.relation.id for work in works]
    try:
        with warehouse.catalog.read() as tx:
            intended = {m.refresh_id for intent in intents.pending(tx, ids) for m in intent.members}
            running = {record.id for record in history.running(tx)} - intended
    except CatalogUnreachable:
        return  # Whether the intent stands is not known: the next process to come will find out.
    lost = [work for work in works if work.refresh_id in running]
    for work in lost:
        discard_stages(warehouse.location_of(work.member.stream.relation), work.stage)
        failed = work is works[-1]
        record_failure(
            warehouse,
            work.refresh_id,
            work.member.stream.relation.id,
            error if failed else RolledBack(str(works[-1].member.name)),
        )


def _result(
    name: TableName,
    choice: Choice,
    inserted: int,
    deleted: int,
    started: datetime,
    ended: datetime,
    version: int | None,
    jobs: int | None,
) -> RefreshResult:
    duration = (ended - started).total_seconds() * 1000
    return RefreshResult(
        str(name), choice.action.value, inserted, deleted, duration, choice.reason, version, jobs
    )
