"""One refresh of one unit, from positions to history."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.apply.steps import Step, reached
from trickle.apply.unit import MemberResult, UnitMember, after_success, commit_unit, recover
from trickle.catalog import alerts, fuses, history, intents, relations, streams
from trickle.catalog.records import Action, FuseReset, Initiator, Outcome, Severity, StreamTable
from trickle.errors import CatalogUnreachable, Gated, HistoryLost, SchemaDrift, TrickleError
from trickle.gates.verdict import UNIT, Verdict, together
from trickle.history.failures import RolledBack, close_abandoned, owner, record_failure, under_way
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stage import discard_stages
from trickle.lake.stages import ahead_of, stages_named
from trickle.refresh import circular
from trickle.refresh.board import Board
from trickle.refresh.brought import Brought
from trickle.refresh.compiled import Compiled
from trickle.refresh.compiling import compiled_for
from trickle.refresh.cycles import blocks, is_circular, with_cycles
from trickle.refresh.dependencies import dependencies_of
from trickle.refresh.gating import Gatekeeper, Tick, gated, refused, skip_reason, verdict_details
from trickle.refresh.making import Made, Task, catch_up, make_differential, make_full
from trickle.refresh.members import (
    Cut,
    Member,
    facts_of,
    is_unfinished,
    load,
    require_filled,
    take_cut,
    weighed,
)
from trickle.refresh.outcome import Done, RefreshResult, Work, commits_of, milliseconds, result_of, unit_member
from trickle.refresh.plan import Choice, Facts, choose
from trickle.refresh.state import State
from trickle.replicas.ingest import ingest_for
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class _Run:
    """What all members of one refresh share."""

    warehouse: Warehouse
    initiated_by: Initiator
    force: bool
    started: datetime
    stage: str
    tick: Tick | None
    board: Board
    brought: Brought | None = None

    @property
    def is_statement(self) -> bool:
        """Whether it is part of a statement on a table that IMMEDIATE stream tables follow."""
        return self.brought is not None and self.brought.is_statement

    @property
    def moment(self) -> datetime:
        """The time that the contents reflect."""
        return self.started if self.tick is None else self.tick.at

    @property
    def fence(self) -> Callable[[Session], None] | None:
        return None if self.tick is None else self.tick.fence

    def gatekeeper(self, cut: Cut) -> Gatekeeper:
        return Gatekeeper(self.warehouse, self.board, self.initiated_by, self.force, cut, self.tick, self.brought)


def refresh(
    warehouse: Warehouse,
    names: Iterable[TableName],
    *,
    initiated_by: Initiator = Initiator.MANUAL,
    force: bool = False,
    tick: Tick | None = None,
    brought: Brought | None = None,
) -> list[RefreshResult]:
    """Refresh stream tables as one unit: all of them move, or none. So do base tables that are ``brought`` with them.

    When a gate holds one back, none is computed or committed: Gated for somebody who asked (ConcurrentModification when
    another refresh is at work), results of action SKIP for the scheduler (``tick``).
    """
    if tick is None and brought is None and initiated_by is Initiator.MANUAL:
        # Whoever asks for a refresh wants to see what is in the source now; a tick has ingested already.
        ingest_for(warehouse, names := list(names))
    board = Board(warehouse) if tick is None else tick.board
    run = _Run(warehouse, initiated_by, force, warehouse.clock.now(), uuid.uuid4().hex, tick, board, brought)
    given = list(dict.fromkeys(names))
    results = _refresh(run, given)
    # Those that were asked for come first.
    return sorted(results, key=lambda one: one.name not in map(str, given))


def _refresh(run: _Run, wanted: list[TableName]) -> list[RefreshResult]:
    warehouse, force, tick, board = run.warehouse, run.force, run.tick, run.board
    with warehouse.catalog.read() as tx:
        members = load(warehouse, tx, wanted, force=force)
        # Those that read each other move together; the scheduler's units are whole already.
        if tick is None and any(member.streams_read for member in members):
            wanted = with_cycles(board.lineage, wanted)
            members = load(warehouse, tx, wanted, force=force) if len(wanted) > len(members) else members
        unfinished = is_unfinished(tx, members)
    if unfinished:
        ids = [member.stream.relation.id for member in members]
        recover(warehouse, ids)
        close_abandoned(warehouse, ids)
        with warehouse.catalog.read() as tx:
            members = load(warehouse, tx, wanted, force=force)
    together = blocks(members)
    members = [member for block in together for member in block]
    require_filled(members)
    try:
        cut = _cut(run, members)
        idle = [work for block in together for work in _idle(run, block, cut)]
    except TrickleError as error:
        _record_lost_source(run, members, error)
        raise
    if all(idle) and run.brought is None:
        return [_record_idle(run, work) for work in idle if work is not None]
    moving = [member for member, nothing in zip(members, idle, strict=True) if nothing is None]
    if not moving:
        return _refresh_unit(run, together, cut, {})
    keeper = run.gatekeeper(cut)
    verdicts = keeper.admit(moving)
    if any(not verdict.proceeds for verdict in verdicts):
        _blow(run, verdicts)
        keeper.record_skips(moving, verdicts, run.started)
        return _held_back(run, moving, verdicts)
    return _refresh_unit(run, together, cut, dict(zip([m.stream.relation.id for m in moving], verdicts, strict=True)))


def _cut(run: _Run, members: list[Member]) -> Cut:
    """Where the sources stand. Those that a statement is about to change are staged, as members of the unit are."""
    brought, board = run.brought, run.board
    if brought is None:
        return take_cut(run.warehouse, members, {} if run.tick is None else run.tick.cut, board.caps)
    cut = take_cut(run.warehouse, members, brought.at)
    return {source: position for source, position in cut.items() if source not in brought.staged}


def _blow(run: _Run, verdicts: list[Verdict]) -> None:
    """Blow the fuses that the verdicts say. A statement is refused and leaves nothing that waits: no fuse is blown."""
    if not run.is_statement:
        run.gatekeeper({}).blow(verdicts)


def _held_back(run: _Run, members: list[Member], verdicts: list[Verdict]) -> list[RefreshResult]:
    """Tell who asked; the scheduler asks again at the next tick."""
    held = [(member, verdict) for member, verdict in zip(members, verdicts, strict=True) if not verdict.proceeds]
    if run.tick is None:
        cause = next((one for one in held if one[1].decisive.gate != UNIT), held[0])
        raise refused(*cause) if run.is_statement else gated(*cause)
    now = run.warehouse.clock.now()
    return [
        RefreshResult(
            name=str(member.name),
            action=Action.SKIP.value,
            rows_inserted=0,
            rows_deleted=0,
            duration_ms=milliseconds(run.started, now),
            reason=skip_reason(verdict),
            version=member.stream.version,
            spark_jobs=None,
        )
        for member, verdict in held
    ]


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
        record_failure(run.warehouse, refresh_id, member.stream.relation.id, error, counted=not run.is_statement)


def _choose(run: _Run, block: list[Member], cut: Cut, staged: Mapping[int, Made]) -> list[Work]:
    if is_circular(block):
        return circular.considered(run.warehouse, block, cut, staged, force=run.force)
    facts, choice, frontier = considered(run.warehouse, block[0], cut, staged, force=run.force)
    return [Work(block[0], choice, frontier, facts)]


def considered(
    warehouse: Warehouse, member: Member, cut: Cut, staged: Mapping[int, Made], *, force: bool
) -> tuple[Facts, Choice, dict[int, LakePosition]]:
    """What is known before a refresh, what it would do, and the frontier that it would reach."""
    facts, frontier = facts_of(warehouse, member, cut, staged, force=force)
    if not facts.populated or facts.always_refresh or any(source.changed for source in facts.sources.values()):
        facts = weighed(warehouse, member, facts, _snapshots(warehouse, member, frontier, staged))
    return facts, choose(facts), frontier


def _snapshots(
    warehouse: Warehouse, member: Member, frontier: Mapping[int, LakePosition], staged: Mapping[int, Made]
) -> dict[int, Snapshot]:
    return {
        source.id: staged[source.id].next
        if source.id in staged
        else open_snapshot(warehouse.location_of(source), frontier[source.id].version)
        for source in member.reading.tables
    }


def _idle(run: _Run, block: list[Member], cut: Cut) -> list[Work | None]:
    """The works of members that have nothing to compute; None for those that have, or that read another member."""
    own = {member.stream.relation.id for member in block}
    if any(source.id not in cut and source.id not in own for m in block for source in m.reading.tables):
        return [None] * len(block)
    works = _choose(run, block, cut, {})
    return [work if work.choice.action is Action.NO_DATA else None for work in works]


def _record_idle(run: _Run, work: Work) -> RefreshResult:
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
            data_timestamp=run.moment,
            last_refresh_at=now,
            status=after_success(stream.status),
            consecutive_errors=0,
        )
    return RefreshResult(
        name=str(work.member.name),
        action=work.choice.action.value,
        rows_inserted=0,
        rows_deleted=0,
        duration_ms=milliseconds(run.started, now),
        reason=work.choice.reason,
        version=stream.version,
        spark_jobs=0,
    )


def _refresh_unit(
    run: _Run, together: list[list[Member]], cut: Cut, admitted: Mapping[int, Verdict]
) -> list[RefreshResult]:
    begun: dict[int, Member] = {}
    done: list[Done] = []
    staged: dict[int, Made] = {} if run.brought is None else dict(run.brought.staged)
    with under_way(run.warehouse) as name:
        try:
            for block in together:
                works: dict[int, Work] = {}
                for work in _choose(run, block, cut, staged):
                    refresh_id = _begin(run, work)
                    name(refresh_id)
                    begun[refresh_id], works[refresh_id] = work.member, work
                reached(Step.STARTED)
                made = _make_block(run, works, staged)
                done += made
                staged |= {one.work.stream.relation.id: one.made for one in made}
            verdicts = _released(run, cut, done)
            if any(not verdict.proceeds for verdict in verdicts):
                _take_back(run, done, verdicts)
                return _held_back(run, [one.work.member for one in done], verdicts)
            commit_unit(
                run.warehouse,
                [
                    unit_member(one, run.moment, _said(admitted.get(one.work.stream.relation.id), verdict))
                    for one, verdict in zip(done, verdicts, strict=True)
                ]
                # Last: when one of the others cannot be committed, the statement has not happened.
                + ([] if run.brought is None else list(run.brought.members)),
                fence=run.fence,
            )
            for one in done:
                _revert_append_only(run, one)
                _rearm(run, one)
        except Gated:
            raise
        except BaseException as error:
            _give_up(run, begun, error)
            raise
    now = run.warehouse.clock.now()
    return [result_of(one, milliseconds(run.started, now)) for one in done]


def _released(run: _Run, cut: Cut, done: list[Done]) -> list[Verdict]:
    staged = [
        (
            one.work.member,
            one.refresh_id,
            one.made,
            one.work.frontier,
            one.work.choice.action is Action.DIFFERENTIAL,
        )
        for one in done
    ]
    return run.gatekeeper(cut).release(staged)


def _take_back(run: _Run, done: list[Done], verdicts: list[Verdict]) -> None:
    """Remove what is staged and say why: the gates did not let it pass."""
    _blow(run, verdicts)
    now = run.warehouse.clock.now()
    for one, verdict in zip(done, verdicts, strict=True):
        discard_stages(run.warehouse.location_of(one.work.stream.relation), run.stage)
        with run.warehouse.catalog.write() as tx:
            history.finish(
                tx,
                one.refresh_id,
                status=Outcome.SKIPPED,
                now=now,
                action=Action.SKIP,
                version_after=one.work.stream.version,
                reason=skip_reason(verdict),
                details=verdict_details(verdict),
            )


def _said(*verdicts: Verdict | None) -> Verdict:
    """What the gates of both phases said of a member that goes on."""
    return together("gates", [verdict for verdict in verdicts if verdict is not None])


def _rearm(run: _Run, done: Done) -> None:
    """Who forces a refresh past a blown fuse has let the changes through."""
    relation_id = done.work.stream.relation.id
    if run.force and run.board.is_blown(relation_id):
        with run.warehouse.catalog.write() as tx:
            fuses.reset(tx, relation_id, FuseReset.APPLY, "force", run.warehouse.clock.now())


def _revert_append_only(run: _Run, done: Done) -> None:
    """A stream table that was declared to grow only, and did not: said once, and taken as any other from now on."""
    stream, own = done.work.stream, done.made.own
    if not stream.options.get("append_only") or own is None or not own.deleted or done.made.state is None:
        return
    if done.work.choice.action is not Action.DIFFERENTIAL:
        return
    now = run.warehouse.clock.now()
    with run.warehouse.catalog.write() as tx:
        options = {**streams.by_id(tx, stream.relation.id).options, "append_only": False}
        streams.update(tx, stream.relation.id, now=now, options=options)
        alerts.add(
            tx,
            event="append_only_reverted",
            relation_id=stream.relation.id,
            severity=Severity.WARNING,
            payload={"stream_table": str(done.work.member.name), "rows_deleted": own.deleted},
            now=now,
        )


def _begin(run: _Run, work: Work) -> int:
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


def _make_block(run: _Run, works: Mapping[int, Work], staged: Mapping[int, Made]) -> list[Done]:
    """Compute and stage the next contents of one member, or of those that read each other."""
    is_idle = all(work.choice.action is Action.NO_DATA for work in works.values())
    if not is_idle and is_circular([work.member for work in works.values()]):
        return circular.make(run.warehouse, works, staged, run.moment, run.stage)
    return [_make(run, work, refresh_id, staged) for refresh_id, work in works.items()]


def _make(run: _Run, work: Work, refresh_id: int, staged: Mapping[int, Made]) -> Done:
    """Compute and stage the next contents."""
    warehouse, member = run.warehouse, work.member
    location = warehouse.location_of(work.stream.relation)
    if work.choice.action is Action.NO_DATA:
        return Done(work, refresh_id, Made(open_snapshot(location, work.stream.version)), 0)
    before = {source: LakePosition.parse(position) for source, position in work.stream.frontier.items()}
    with warehouse.engine.count_jobs() as count, stages_named(run.stage):
        task = Task(warehouse, member, before, work.frontier, staged, run.moment)
        task = replace(task, compiled=compiled_for(task))
        if work.choice.action is Action.DIFFERENTIAL:
            try:
                work, made = _by_changes(run, work, task)
            except (HistoryLost, SchemaDrift) as lost:
                work = _rebuilt(run, work, "HISTORY_LOST", lost.message)
                made = make_full(task, Action.REINITIALIZE)
        else:
            made = make_full(task, work.choice.action)
    return Done(work, refresh_id, made, count.jobs)


def _by_changes(run: _Run, work: Work, task: Task) -> tuple[Work, Made]:
    state = usable_state(work.stream, task.compiled)
    if state is None or isinstance(task.compiled, str):
        return _rebuilt(run, work, "LAYOUT_CHANGED", "what is stored was laid out by another version"), make_full(
            task, Action.REINITIALIZE
        )
    if dict(state.frontier) == dict(work.stream.frontier) or not task.compiled.inner:
        return work, make_differential(task, state)
    begun = run.warehouse.clock.now()
    work = _caught_up(run, work, task, state)
    took = milliseconds(begun, run.warehouse.clock.now())
    state = State.of(work.stream)
    assert state is not None
    made = make_differential(replace(task, member=work.member), state)
    return work, replace(made, details={**made.details, "caught_up_ms": round(took, 3)})


def usable_state(stream: StreamTable, compiled: Compiled | str) -> State | None:
    """The state that a refresh by changes starts from; None when what is stored was laid out otherwise."""
    state = State.of(stream)
    fits = state is not None and isinstance(compiled, Compiled) and state.signature == compiled.signature
    return state if fits else None


def _rebuilt(run: _Run, work: Work, code: str, words: str) -> Work:
    """A refresh that cannot go by changes after all: said in the history, and as an alert."""
    with run.warehouse.catalog.write() as tx:
        alerts.add(
            tx,
            event="reinitialize_needed",
            relation_id=work.stream.relation.id,
            severity=Severity.WARNING,
            payload={"stream_table": str(work.member.name), "reason": code, "detail": words},
            now=run.warehouse.clock.now(),
        )
    reason = f"{work.choice.reason}; built anew, as {words}"
    return replace(work, choice=Choice(Action.REINITIALIZE, reason, work.choice.moves, code))


def _caught_up(run: _Run, work: Work, task: Task, state: State) -> Work:
    """Bring the inner tables up and commit them alone: they stood where the last refresh by changes left them.

    Their files are not the rest of the refresh's: it may fail or be held back, and these stay.
    """
    stream, ahead = work.stream, ahead_of(run.stage)
    try:
        with stages_named(ahead):
            made = catch_up(task, state)
        _commit_inner(run, stream, made)
    except BaseException:
        if not _has_begun(run.warehouse, stream):
            discard_stages(run.warehouse.location_of(stream.relation), ahead)
        raise
    with run.warehouse.catalog.read() as tx:
        return replace(work, member=replace(work.member, stream=streams.by_id(tx, stream.relation.id)))


def _has_begun(warehouse: Warehouse, stream: StreamTable) -> bool:
    """Whether a unit of a stream table was decided since it was loaded, or may have been."""
    try:
        with warehouse.catalog.read() as tx:
            moved = streams.by_id(tx, stream.relation.id).refresh_number != stream.refresh_number
            return moved or bool(intents.pending(tx, [stream.relation.id]))
    except CatalogUnreachable:
        return True


def _commit_inner(run: _Run, stream: StreamTable, made: Made) -> None:
    result = MemberResult(
        version=made.snapshot.version if stream.version is None else stream.version,
        frontier=stream.frontier,
        action=Action.DIFFERENTIAL,
        rows_inserted=0,
        rows_deleted=0,
        reason=None,
        data_timestamp=stream.data_timestamp or run.moment,
        effective_mode=stream.effective_mode,
        details={},
        state=made.state,
    )
    number = stream.refresh_number + 1
    commit_unit(
        run.warehouse,
        [UnitMember(stream.relation.id, number, commits_of(stream, made, number), None, result)],
        fence=run.fence,
    )


def _give_up(run: _Run, begun: Mapping[int, Member], error: BaseException) -> None:
    """Remove what was staged and close the history rows, unless the intent stands: then the unit will happen."""
    ids = [member.stream.relation.id for member in begun.values()]
    try:
        with run.warehouse.catalog.read() as tx:
            intended = {m.refresh_id for intent in intents.pending(tx, ids) for m in intent.members}
            running = {record.id for record in history.running(tx)} - intended
    except CatalogUnreachable:
        return  # Whether the intent stands is not known: the next process to come will find out.
    failed = [member.name for block in blocks(list(begun.values()))[-1:] for member in block]
    for refresh_id, member in begun.items():
        if refresh_id in running:
            discard_stages(run.warehouse.location_of(member.stream.relation), run.stage)
            own = error if member.name in failed else RolledBack(str(failed[0]))
            record_failure(run.warehouse, refresh_id, member.stream.relation.id, own, counted=not run.is_statement)
