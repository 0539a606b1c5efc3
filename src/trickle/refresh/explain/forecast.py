"""``explain_refresh_mode``: what the next refresh would do, from the very facts that it would decide by."""

from __future__ import annotations

from dataclasses import dataclass

from trickle.algebra.names import TableName
from trickle.catalog.records import Action, RefreshMode, Status
from trickle.changes.between import ChangeBuffer
from trickle.refresh.cost import Estimate, estimate
from trickle.refresh.execute import considered, usable_state
from trickle.refresh.explain.opened import located, open_stream
from trickle.refresh.members import Cut, Member, weighed
from trickle.refresh.plan import Choice, Facts, SourceFact
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class SourceChange:
    """How far a source has moved since the last refresh. ``changed_rows`` is None when only reading would tell."""

    name: str
    changed: bool
    changed_rows: int | None
    source_rows: int | None


@dataclass(frozen=True)
class Forecast:
    """What the next refresh would do. Milliseconds are None where the history does not tell."""

    name: str
    action: str
    code: str
    reason: str
    full_ms: float | None
    changes_ms: float | None
    changed_rows: int | None
    threshold: float | None
    sources: tuple[SourceChange, ...]


def explain_refresh_mode(warehouse: Warehouse, name: TableName) -> Forecast:
    """The action of the next refresh and why it would be chosen. Spark is asked only before a refresh by changes."""
    member, cut = located(warehouse, name)
    facts, choice, _ = considered(warehouse, member, cut, {}, force=False)
    stream = member.stream
    is_weighed = facts.populated and (facts.always_refresh or any(source.changed for source in facts.sources.values()))
    if choice.action is Action.DIFFERENTIAL:
        choice = _as_it_would_turn_out(warehouse, member, cut, choice)
    if stream.status is Status.SUSPENDED:
        choice = Choice(Action.SKIP, f"it is suspended; otherwise {choice.action.value}", moves=False, code="SUSPENDED")
    expected = _expected(facts) if is_weighed else None
    keeping = facts.keeping if is_weighed else weighed(warehouse, member, facts, {}).keeping
    return Forecast(
        name=str(member.name),
        action=choice.action.value,
        code=choice.code,
        reason=choice.reason,
        full_ms=expected.full_ms if expected else None,
        changes_ms=expected.changes_ms if expected else None,
        changed_rows=_changed_rows(facts),
        threshold=keeping.max_ratio if stream.refresh_mode is RefreshMode.AUTO else None,
        sources=tuple(_source(fact, is_weighed=is_weighed) for fact in facts.sources.values()),
    )


def _as_it_would_turn_out(warehouse: Warehouse, member: Member, cut: Cut, choice: Choice) -> Choice:
    """A refresh by changes may find that it cannot: it would then build the stream table anew."""
    for source in member.reading.tables:
        before = LakePosition.parse(member.stream.frontier[source.id])
        if before != cut[source.id] and not _is_reachable(warehouse, member, cut, source.id, before):
            reason = f"{choice.reason}; built anew, as {source.name} was replaced"
            return Choice(Action.REINITIALIZE, reason, choice.moves, "HISTORY_LOST")
    if usable_state(member.stream, open_stream(warehouse, member.name).compiled) is None:
        reason = f"{choice.reason}; built anew, as what is stored was laid out by another version"
        return Choice(Action.REINITIALIZE, reason, choice.moves, "LAYOUT_CHANGED")
    return choice


def _is_reachable(warehouse: Warehouse, member: Member, cut: Cut, source_id: int, before: LakePosition) -> bool:
    source = next(relation for relation in member.reading.tables if relation.id == source_id)
    return ChangeBuffer(warehouse.location_of(source), before, cut[source_id]).is_reachable


def _expected(facts: Facts) -> Estimate:
    rows = sum(source.source_rows for source in facts.sources.values())
    keeping = facts.keeping
    return estimate(keeping.samples, _changed_rows(facts), rows, keeping.max_ratio, is_behind=keeping.is_behind)


def _changed_rows(facts: Facts) -> int | None:
    counts = [source.counted_rows for source in facts.sources.values() if source.changed]
    return None if None in counts else sum(count or 0 for count in counts)


def _source(fact: SourceFact, *, is_weighed: bool) -> SourceChange:
    return SourceChange(fact.name, fact.changed, fact.counted_rows, fact.source_rows if is_weighed else None)
