"""What a tick does, decided from what it looked at: pure.

``plan`` says at the beginning which stream tables are due and have nothing to do, and which units may have to run.
``decide`` says of one unit, when those that it reads from have ended, whether it runs, rests or is held: a stream table
may have something to do only because one that it reads has just changed.

A stream table that should move and does not (suspended, its fuse blown, its refresh failed) is *held*, and so is
everything that reads it: the others would show a state that never was. One that is merely not due holds nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from trickle.catalog.records import Schedulable, Status
from trickle.dag.units import Unit
from trickle.gates.facts import Due, HeldUpstream
from trickle.gates.pipeline import admit
from trickle.gates.verdict import Decision, Verdict, held_together
from trickle.scheduler.facts import TickFacts, table_facts
from trickle.scheduler.schedules import CALCULATED, Every, due, policy_of, unit_is_due
from trickle.scheduler.state import State


@dataclass(frozen=True)
class Planned:
    """A unit that may have to run in this tick."""

    unit: Unit[int]
    due: bool
    """Whether it is due by its schedule; else only when something that it reads has changed."""
    after: frozenset[str]
    """The units of this tick that it waits for."""


@dataclass(frozen=True)
class Plan:
    """What a tick has to do."""

    state: State
    due: Mapping[int, Due]
    idle: frozenset[int]
    """Stream tables that are due and have nothing to do."""
    units: tuple[Planned, ...]
    """Each after those it waits for."""
    stuck: Mapping[int, HeldUpstream]
    """Stream tables that are held and not due: those that read them are held with them."""

    @property
    def next_at(self) -> datetime | None:
        """When the next stream table is due that has something to do."""
        waiting = (t for t in self.state.tables if not self.due[t].due and self.state.is_stale(t))
        return min((at for t in waiting if (at := self.due[t].next_at) is not None), default=None)

    @cached_property
    def by_key(self) -> Mapping[str, Planned]:
        return {planned.unit.key: planned for planned in self.units}


@dataclass(frozen=True)
class Ended:
    """How a unit ended: the stream tables that changed, and those that are held."""

    changed: frozenset[int] = frozenset()
    held: Mapping[int, HeldUpstream] = field(default_factory=dict)


@dataclass(frozen=True)
class Go:
    """Refresh the unit."""

    members: tuple[int, ...]
    """Without those that are suspended, which have nothing to do here or would hold the others."""
    due: Mapping[int, Due]
    held: Mapping[int, HeldUpstream]


@dataclass(frozen=True)
class Rest:
    """Nothing to do; these stream tables are as fresh as the cut."""

    fresh: frozenset[int]


@dataclass(frozen=True)
class Hold:
    """Not in this tick, for these reasons."""

    verdicts: Mapping[int, Verdict]

    def ended(self, plan: Plan, unit: Unit[int]) -> Ended:
        """Every member is held: one that has no reason of its own, for the first one's."""
        first = next(v.decisive for v in self.verdicts.values() if not v.proceeds)
        held = {m: self.verdicts[m].decisive if m in self.verdicts else first for m in unit.members}
        return Ended(held={m: held_as(plan, m, why.decision.value, why.reason) for m, why in held.items()})


Choice = Go | Rest | Hold


def held_as(plan: Plan, table: int, decision: str, reason: str) -> HeldUpstream:
    """A stream table that is held, as those that read it are told."""
    return HeldUpstream(str(plan.state.tables[table].name), decision, reason)


def plan(state: State, busy: AbstractSet[int] = frozenset()) -> Plan:
    """What is due, what rests, and which units may have to run. ``busy``: stream tables that are being worked on."""
    dues = {table.id: _due(state, table) for table in state.tables.values()}
    idle: set[int] = set()
    planned: list[Planned] = []
    moving: set[str] = set()
    stuck: dict[int, HeldUpstream] = {}
    dag = state.definitions.dag
    for unit in dag.units:
        if not state.tables.keys() >= set(unit.members) or not busy.isdisjoint(unit.members):
            continue
        after = dag.waits_for[unit.key] & moving
        held = {s for m in unit.members for s in dag.streams[m].reads if s in stuck}
        is_due = _unit_due(state, unit, dues)
        stale = any(state.is_stale(member) for member in unit.members)
        if (is_due and (stale or after or held)) or (after and _follows(state, unit, after)):
            moving.add(unit.key)
            planned.append(Planned(unit, is_due, after))
        elif is_due:
            idle |= _to_mark(state, unit, dues)
        elif held or stale:
            stuck |= _stuck(state, unit, {source: stuck[source] for source in held})
    return Plan(state, dues, frozenset(idle), tuple(planned), stuck)


def _due(state: State, table: Schedulable, *, rested: bool = True) -> Due:
    effective = state.definitions.schedules[table.id]
    last = table.last_refresh_at if table.populated else None
    if rested and last is not None and isinstance(effective.schedule, Every):
        last = state.since.get(table.id, last)
    return due(effective, last, state.now, backoff=state.factors.get(table.id, 1))


def _to_mark(state: State, unit: Unit[int], dues: Mapping[int, Due]) -> set[int]:
    """The members to be marked as fresh: no more often than their schedules ask for."""
    return {
        member
        for member in unit.members
        if dues[member].due and (not state.since or _due(state, state.tables[member], rested=False).due)
    }


def _unit_due(state: State, unit: Unit[int], dues: Mapping[int, Due]) -> bool:
    if _rests(state, unit):
        return False
    policy = policy_of([_text(state.tables[m].options.get("diamond_schedule_policy")) for m in unit.members])
    return unit_is_due([dues[member] for member in unit.members], policy)


def _rests(state: State, unit: Unit[int]) -> bool:
    """Whether a unit is left alone: a frozen member freezes what must move with it."""
    return any(state.definitions.schedules[m].factor == 0 or m in state.left_alone for m in unit.members)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _follows(state: State, unit: Unit[int], after: AbstractSet[str]) -> bool:
    """Whether a member goes with what it reads, and reads something that may move."""
    dag = state.definitions.dag
    return not _rests(state, unit) and any(
        state.tables[member].schedule == CALCULATED
        and any(s in dag.streams and dag.unit_of(s).key in after for s in dag.streams[member].reads)
        for member in unit.members
    )


def _stuck(state: State, unit: Unit[int], held: Mapping[int, HeldUpstream]) -> dict[int, HeldUpstream]:
    """The members of a unit that will not move when they are due either, as far as can be told without asking."""
    for member in unit.members:
        table = state.tables[member]
        above = {member} | state.definitions.dag.above[member]
        blown = next((state.blown[one] for one in sorted(above & state.blown.keys())), None)
        gated = next((state.definitions.gated[one] for one in sorted(above & state.definitions.gated.keys())), None)
        upstream = next((held[s] for s in state.definitions.dag.streams[member].reads if s in held), None)
        reason = None
        if table.status is Status.SUSPENDED:
            reason = "it is suspended"
        elif blown is not None:
            reason = f"fuse of {blown.name} is blown"
        elif gated is not None:
            reason = f"source {gated.name} is gated"
        elif upstream is not None:
            reason = f"upstream {upstream.name} is held: {upstream.reason}"
        if reason is not None:
            return {m: HeldUpstream(str(state.tables[m].name), Decision.BLOCK.value, reason) for m in unit.members}
    return {}


def decide(plan: Plan, planned: Planned, ended: Mapping[str, Ended]) -> Choice:
    """What becomes of a unit, when those that it reads from have ended."""
    state, unit = plan.state, planned.unit
    reads = {member: state.definitions.dag.streams[member].reads for member in unit.members}
    above = [ended[key] for key in planned.after if key in ended]
    changed = frozenset(table for one in above for table in one.changed)
    held = {table: why for one in above for table, why in one.held.items()} | dict(plan.stuck)
    moving: list[int] = []
    for member in unit.members:
        if state.is_stale(member) or reads[member] & changed or reads[member] & set(moving):
            moving.append(member)
    asked = [member for member in unit.members if member in moving or reads[member] & held.keys()]
    follows = any(state.tables[m].schedule == CALCULATED and reads[m] & changed for m in unit.members)
    if not asked or not (planned.due or follows):
        return Rest(frozenset(_to_mark(state, unit, plan.due)) if planned.due else frozenset())
    dues = {m: Due(plan.due[m].schedule, due=True, next_at=plan.due[m].next_at) for m in unit.members}
    verdicts = {
        member: admit(
            table_facts(state.tables[member], tiered=state.definitions.settings.tiered_scheduling),
            TickFacts(state, unit, state.tables[member], dues[member], changed | set(moving), held),
        )
        for member in asked
    }
    if all(verdict.proceeds for verdict in verdicts.values()):
        able = tuple(m for m in unit.members if m in asked or state.tables[m].status is not Status.SUSPENDED)
        return Go(able, dues, held)
    names = {str(state.tables[member].name): member for member in asked}
    together = held_together({name: verdicts[member] for name, member in names.items()})
    return Hold({names[name]: verdict for name, verdict in together.items()})
