"""One tick that is being carried out.

Units whose sources have ended run side by side; one that fails stops only what reads it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from trickle.catalog.leases import LeaseLost
from trickle.catalog.records import Action, Event, Initiator, JobStatus, RefreshMode
from trickle.dag.units import Unit
from trickle.errors import TransientError, TrickleError
from trickle.gates.verdict import Verdict, skip
from trickle.refresh.execute import refresh
from trickle.refresh.gating import Tick, skip_reason
from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.backoff import is_falling_behind, next_factor, retry_delay
from trickle.scheduler.crew import Crew, Place, Result, Task
from trickle.scheduler.facts import unit_facts
from trickle.scheduler.lease import Leadership
from trickle.scheduler.pools import in_pool
from trickle.scheduler.recording import alert_once, begin_job, end_job, enqueue, mark_fresh, record_held
from trickle.scheduler.state import Memory, State
from trickle.scheduler.tick import Ended, Go, Hold, Plan, Planned, Rest, decide, held_as
from trickle.warehouse import Warehouse

FAILED = "FAILED"
"""The action of a result that is none: the refresh failed."""

_RANKS = {"hot": 1, "warm": 2, "cold": 3}
log = logging.getLogger("trickle.scheduler")


@dataclass
class Run:
    """One tick that is being carried out."""

    warehouse: Warehouse
    memory: Memory
    crew: Crew
    plan: Plan
    leader: Leadership
    ended: dict[str, Ended] = field(default_factory=dict)
    results: list[RefreshResult] = field(default_factory=list)
    _waiting: list[Planned] = field(init=False)
    _open: set[str] = field(default_factory=set)
    _took: dict[str, timedelta] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting = list(self.plan.units)

    @property
    def is_done(self) -> bool:
        return not self._waiting and not self._open

    @property
    def tables(self) -> set[int]:
        """The stream tables that this tick still has to do with."""
        keys = {planned.unit.key for planned in self._waiting} | self._open
        return {member for key in keys for member in self.plan.by_key[key].unit.members}

    def advance(self) -> None:
        """Decide about every unit whose sources have ended, and hand those that go to the workers."""
        fresh: set[int] = set()
        held: dict[int, Verdict] = {}
        for planned in list(self._waiting):
            if not planned.after <= self.ended.keys():
                continue
            self._waiting.remove(planned)
            match decide(self.plan, planned, self.ended):
                case Rest(tables):
                    fresh |= tables
                    self.ended[planned.unit.key] = Ended()
                case Hold() as hold:
                    held |= hold.verdicts
                    self.ended[planned.unit.key] = hold.ended(self.plan, planned.unit)
                case Go() as go:
                    held |= self._hand_over(planned.unit, go)
        mark_fresh(self.warehouse, self.memory, self.plan.state, fresh)
        record_held(self.warehouse, self.memory, self.plan.state, held)
        self.results += [self._skipped(table, verdict) for table, verdict in held.items()]

    def give_up_waiting(self) -> None:
        """Begin nothing more; what has begun goes on."""
        self._waiting.clear()

    def _hand_over(self, unit: Unit[int], go: Go) -> dict[int, Verdict]:
        rank = _rank(self.plan.state, unit)
        job = enqueue(self.warehouse, unit, self.leader.token, rank)
        if job is None:
            return self._taken_elsewhere(unit)
        schemas = frozenset(self.plan.state.tables[m].name.schema_key for m in unit.members)
        place = Place(rank, len(self.ended) + len(self._open), schemas)
        self._open.add(unit.key)
        self.crew.put(
            Task(
                unit.key,
                _names(self.plan.state, unit),
                place,
                work=lambda: self._carry_out(unit, go, job),
                done=lambda result: self._take_in(unit, job, result),
                drop=lambda: self._drop(unit, job),
            )
        )
        return {}

    def _taken_elsewhere(self, unit: Unit[int]) -> dict[int, Verdict]:
        verdicts = {m: skip("lock", "another scheduler has a job for it") for m in unit.members}
        self.ended[unit.key] = Hold(verdicts).ended(self.plan, unit)
        return verdicts

    def _carry_out(self, unit: Unit[int], go: Go, job: int) -> list[RefreshResult]:
        """In a worker: refresh the unit, again after errors that pass."""
        begin_job(self.warehouse, job)
        state = self.plan.state
        tick = Tick(
            at=state.now,
            cut=state.cut,
            board=state.board,
            unit=unit_facts(state, unit),
            due=go.due,
            held=go.held,
            fence=self.leader.fence,
        )
        names = [state.tables[member].name for member in go.members]
        retries = state.definitions.settings.refresh_retries
        began = self.warehouse.clock.now()
        try:
            with in_pool(self.warehouse.engine, unit.key):
                return self._tried(
                    unit, retries, lambda: refresh(self.warehouse, names, initiated_by=Initiator.SCHEDULER, tick=tick)
                )
        finally:
            self._took[unit.key] = self.warehouse.clock.now() - began

    def _tried(self, unit: Unit[int], retries: int, work: Callable[[], list[RefreshResult]]) -> list[RefreshResult]:
        attempt = 0
        while True:
            attempt += 1
            try:
                return work()
            except TransientError as error:
                stop = isinstance(error, LeaseLost) or attempt > retries or self.crew.stopping.is_set()
                if stop or self.leader.lost:
                    raise
                delay = retry_delay(attempt, random.random())  # noqa: S311 - spreads retries, protects nothing
                log.info(
                    "event=retry unit=%s attempt=%s error=%r", _names(self.plan.state, unit), attempt, error.message
                )
                self.crew.stopping.wait(delay.total_seconds())

    def _take_in(self, unit: Unit[int], job: int, result: Result) -> None:
        """Back in the tick's own thread: what became of a unit."""
        self._open.discard(unit.key)
        state = self.plan.state
        if isinstance(result, BaseException):
            self._failed(unit, job, result)
        else:
            self.results += result
            self.ended[unit.key] = _ended(self.plan, unit, result)
            end_job(self.warehouse, job, JobStatus.SUCCEEDED, actions=[one.action for one in result])
            if any(one.action != Action.SKIP for one in result):
                self._pace(unit, self._took[unit.key])
            for one in result:
                log.info(
                    "event=refreshed table=%s action=%s inserted=%s deleted=%s ms=%.0f reason=%r",
                    one.name, one.action, one.rows_inserted, one.rows_deleted, one.duration_ms, one.reason,
                )  # fmt: skip
        for member in unit.members:
            self.memory.computed.pop(member, None)
            if not isinstance(result, BaseException) and str(state.tables[member].name) not in _skips(result):
                self.memory.said.pop(member, None)

    def _drop(self, unit: Unit[int], job: int) -> None:
        """A unit that no worker has begun, and none will."""
        self._open.discard(unit.key)
        end_job(self.warehouse, job, JobStatus.CANCELLED, "the scheduler stopped before it began")

    def _failed(self, unit: Unit[int], job: int, error: BaseException) -> None:
        state = self.plan.state
        words = (
            f"{error.message} [{error.code}]" if isinstance(error, TrickleError) else f"{type(error).__name__}: {error}"
        )
        why = f"its refresh failed: {words}"
        self.ended[unit.key] = Ended(held={m: held_as(self.plan, m, "SKIP", why) for m in unit.members})
        passes = isinstance(error, TransientError)
        end_job(self.warehouse, job, JobStatus.RETRYABLE_FAILED if passes else JobStatus.PERMANENT_FAILED, words)
        # An error that is none of ours is a fault in the code: its trace is worth having.
        trace = None if isinstance(error, TrickleError) else error
        log.error("event=failed unit=%s error=%r", _names(state, unit), words, exc_info=trace)
        for member in unit.members:
            table = state.tables[member]
            self.results.append(RefreshResult(str(table.name), FAILED, 0, 0, 0.0, words, table.version, None))

    def _pace(self, unit: Unit[int], took: timedelta) -> None:
        """Stretch the schedule of what cannot keep it, and say so in time."""
        state = self.plan.state
        settings = state.definitions.settings
        for member in unit.members:
            if not state.tables[member].populated:
                continue  # The first fill says nothing about those to come.
            interval = state.definitions.schedules[member].interval
            factor = self.memory.factors.pop(member, 1)
            if settings.auto_backoff:
                self.memory.factors[member] = next_factor(factor, took, interval)
            payload = {
                "stream_table": str(state.tables[member].name),
                "took_ms": round(took.total_seconds() * 1000),
                "schedule": state.definitions.schedules[member].words,
                "stretched_by": self.memory.factors.get(member, 1),
            }
            behind = is_falling_behind(took, interval)
            alert_once(self.warehouse, self.memory, Event.SCHEDULER_FALLING_BEHIND, member, behind, payload)

    def _skipped(self, table: int, verdict: Verdict) -> RefreshResult:
        found = self.plan.state.tables[table]
        return RefreshResult(str(found.name), Action.SKIP.value, 0, 0, 0.0, skip_reason(verdict), found.version, 0)


def _ended(plan: Plan, unit: Unit[int], results: Iterable[RefreshResult]) -> Ended:
    ids = {str(plan.state.tables[member].name): member for member in unit.members}
    changed, held = set(), {}
    for result in results:
        member = ids[result.name]
        if result.action == Action.SKIP:
            held[member] = held_as(plan, member, "SKIP", result.reason)
        elif result.version != plan.state.tables[member].version:
            changed.add(member)
    if held:
        first = next(iter(held.values()))
        held = {m: held.get(m, held_as(plan, m, first.decision, first.reason)) for m in unit.members}
    return Ended(frozenset(changed), held)


def _skips(results: Iterable[RefreshResult]) -> set[str]:
    return {result.name for result in results if result.action == Action.SKIP}


def _rank(state: State, unit: Unit[int]) -> int:
    """IMMEDIATE before hot, warm and cold; a unit is as urgent as its most urgent member."""
    tables = [state.tables[member] for member in unit.members]
    if any(table.refresh_mode is RefreshMode.IMMEDIATE for table in tables):
        return 0
    return min(_RANKS.get(str(table.options.get("tier", "hot")), 3) for table in tables)


def _names(state: State, unit: Unit[int]) -> str:
    return "+".join(str(state.tables[member].name) for member in unit.members)
