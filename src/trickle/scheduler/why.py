"""Why a stream table is not refreshed: what every gate says now, of it and of those that it must go with."""

from __future__ import annotations

from trickle.algebra.names import TableName
from trickle.catalog import history, streams
from trickle.catalog.records import Action, Outcome, RefreshMode, RefreshRecord
from trickle.dag.units import Unit
from trickle.errors import TrickleError
from trickle.gates.facts import HeldUpstream
from trickle.gates.verdict import Verdict
from trickle.refresh.gating import Tick
from trickle.refresh.why import verdicts_now
from trickle.scheduler.facts import unit_facts
from trickle.scheduler.run import memory_of
from trickle.scheduler.state import State, load_state
from trickle.scheduler.tick import plan
from trickle.warehouse import Warehouse


def why_not_refreshed(warehouse: Warehouse, name: TableName) -> list[str]:
    """The verdicts in words, line by line, and what the history last said."""
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
    if stream.refresh_mode is RefreshMode.IMMEDIATE:
        return [f"{name} is IMMEDIATE: it changes with its sources, and nothing refreshes it"]
    relation_id = stream.relation.id
    state = load_state(warehouse, memory_of(warehouse), warehouse.clock.now())
    lines = _told(state)
    try:
        for member, verdict in _verdicts(warehouse, state, relation_id).items():
            lines += [f"{member}:", *(f"  {line}" for line in verdict.lines())]
    except TrickleError as error:
        lines.append(f"the gates cannot be asked: {error.message}")
    with warehouse.catalog.read() as tx:
        last = history.recent(tx, relation_id, limit=1)
    return lines + [line for record in last for line in _last(record)]


def _told(state: State) -> list[str]:
    if state.told.paused:
        why = f": {state.told.pause_reason}" if state.told.pause_reason else ""
        return [f"the scheduler is paused by {state.told.paused_by}{why}"]
    return [f"the scheduler is drained by {state.told.draining_by}"] if state.told.draining else []


def _verdicts(warehouse: Warehouse, state: State, relation_id: int) -> dict[str, Verdict]:
    """The verdict of the stream table first, then those of the others in its unit."""
    made = plan(state)
    unit = state.definitions.dag.unit_of(relation_id)
    tick = Tick(
        at=state.now,
        cut=state.cut,
        board=state.board,
        unit=unit_facts(state, unit),
        due=made.due,
        held={**_held_before(warehouse, state, unit), **made.stuck},
    )
    others = [member for member in unit.members if member != relation_id]
    return verdicts_now(warehouse, [relation_id, *others], tick)


def _held_before(warehouse: Warehouse, state: State, unit: Unit[int]) -> dict[int, HeldUpstream]:
    """Stream tables above the unit that were held back when they were last asked."""
    found: dict[int, HeldUpstream] = {}
    over = {one for member in unit.members for one in state.definitions.dag.above[member]} - set(unit.members)
    for above in over & state.tables.keys():
        with warehouse.catalog.read() as tx:
            last = history.recent(tx, above, limit=1)
        if last and last[0].action is Action.SKIP and last[0].status is Outcome.SKIPPED and state.is_stale(above):
            name = state.definitions.name(above)
            found[above] = HeldUpstream(name, "SKIP", last[0].reason or "it was held back")
    return found


def _last(record: RefreshRecord) -> list[str]:
    what = "held back" if record.action is Action.SKIP else record.action.value
    lines = [f"last in the history, {record.started_at:%Y-%m-%d %H:%M:%S} UTC: {what}, {record.status.value.lower()}"]
    if record.reason:
        lines.append(f"  {record.reason}")
    if record.error_message:
        lines.append(f"  {record.error_message.splitlines()[0]}")
    return lines
