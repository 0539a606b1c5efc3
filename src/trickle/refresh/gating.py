"""Gates around one refresh: asked before anything is computed, and again when it is staged and not yet committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sqlalchemy.orm import Session

from trickle.catalog import alerts, fuses, history
from trickle.catalog.records import Action, Event, Initiator, Isolation, Outcome, RefreshRecord
from trickle.errors import ConcurrentModification, Gated, TrickleError
from trickle.gates.facts import Due, HeldUpstream, TableFacts, UnitFacts
from trickle.gates.lock import LockGate
from trickle.gates.pipeline import admit, release
from trickle.gates.verdict import Verdict, held_together, proceed
from trickle.refresh.board import Board
from trickle.refresh.brought import Brought
from trickle.refresh.facts import Gathered, table_facts
from trickle.refresh.making import Made
from trickle.refresh.members import Cut, Member
from trickle.refresh.outcome import delta_of
from trickle.refresh.usergates import asked
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse

_FIRST_FILL = proceed("gates", "first fill")
"""Nothing is lost by filling a table that has nothing."""


def _unfenced(_: Session) -> None:
    """Nobody else can be the leader of a refresh that somebody asked for."""


@dataclass(frozen=True)
class Tick:
    """What a tick of the scheduler gives to a refresh in it."""

    at: datetime
    """When the cut was taken."""
    cut: Cut
    board: Board
    unit: UnitFacts = field(default_factory=UnitFacts)
    due: Mapping[int, Due] = field(default_factory=dict)
    held: Mapping[int, HeldUpstream] = field(default_factory=dict)
    fence: Callable[[Session], None] = _unfenced
    """Called in the transaction that decides to commit: refuses when another scheduler has taken over."""


@dataclass(frozen=True)
class Gatekeeper:
    """Asks the gates for the members of one unit."""

    warehouse: Warehouse
    board: Board
    initiated_by: Initiator
    force: bool
    cut: Cut
    tick: Tick | None = None
    brought: Brought | None = None
    """Base tables that move in the same unit."""

    @property
    def follows(self) -> bool:
        """Whether IMMEDIATE stream tables follow what changes in base tables."""
        return self.brought is not None

    @property
    def is_manual(self) -> bool:
        return self.tick is None

    def admit(self, members: Sequence[Member]) -> list[Verdict]:
        """What the gates say before anything is computed; no more than the first reason for each member."""
        if self.initiated_by is Initiator.INITIAL:
            return [_FIRST_FILL] * len(members)
        return _as_unit(members, [admit(self._table(m), self._facts(m), statement=self.follows) for m in members])

    def release(self, staged: Sequence[tuple[Member, int, Made, Mapping[int, LakePosition], bool]]) -> list[Verdict]:
        """What the gates say of the staged changes: of each member its refresh, result, frontier and way."""
        if self.initiated_by is Initiator.INITIAL:
            return [_FIRST_FILL] * len(staged)
        frontiers = {m.stream.relation.id: frontier for m, _, _, frontier, _ in staged}
        overlays = {m.stream.relation.id: made.next for m, _, made, _, _ in staged}
        overlays |= {table: made.next for table, made in self._staged_base.items()}
        verdicts = []
        for member, refresh_id, made, frontier, by_changes in staged:
            facts = replace(
                self._facts(member),
                own_refreshes=frozenset({refresh_id}),
                staged=frontiers,
                staged_delta=delta_of(made, by_changes=by_changes),
                answers=partial(asked, self.board, member, made, frontier, overlays),
            )
            verdicts.append(release(self._table(member), facts, statement=self.follows))
        return _as_unit([m for m, *_ in staged], verdicts)

    def explain(self, member: Member) -> Verdict:
        """What all gates of the first phase say, also those after the one that decides."""
        return admit(self._table(member), self._facts(member), everything=True)

    def _table(self, member: Member) -> TableFacts:
        tiered = self.board.settings.tiered_scheduling
        return table_facts(member.stream, tiered=tiered, manual=self.is_manual, force=self.force)

    def _facts(self, member: Member) -> Gathered:
        relation_id, tick = member.stream.relation.id, self.tick
        facts = Gathered(
            self.board,
            member.stream,
            member.reading.tables,
            self.cut,
            self.warehouse.clock.now(),
            brought=self._staged_base,
        )
        if tick is None:
            return facts
        return replace(
            facts,
            cut_at=tick.at,
            due=tick.due.get(relation_id, facts.due),
            unit=self._unit(tick),
            held=tick.held,
        )

    @property
    def _staged_base(self) -> Mapping[int, Made]:
        return {} if self.brought is None else self.brought.staged

    def _unit(self, tick: Tick) -> UnitFacts:
        if tick.unit.isolation != Isolation.REPEATABLE_READ:
            return tick.unit
        lineage = self.board.lineage
        base = {source: at for source, at in {**tick.cut, **self.cut}.items() if not lineage.is_stream_table(source)}
        return replace(tick.unit, cut={lineage.name(source): str(at) for source, at in base.items()})

    def blow(self, verdicts: Sequence[Verdict]) -> None:
        """Blow the fuses that the verdicts say, and tell about it."""
        for verdict in verdicts:
            for one in _all(verdict):
                if one.details.get("blows"):
                    self._blow_one(one)

    def _blow_one(self, one: Verdict) -> None:
        owner = next(i for i in self.board.lineage.tables if self.board.lineage.name(i) == one.details["owner"])
        now = self.warehouse.clock.now()
        name = self.board.lineage.tables[owner].name
        details = {key: value for key, value in one.details.items() if key != "blows"}
        payload = {"event": Event.FUSE_BLOWN.value, "st_name": name.table, "schema": name.schema, **details}
        with self.warehouse.catalog.write() as tx:
            if fuses.blow(tx, owner, now, str(details["blow_reason"]), details):
                alerts.add(
                    tx,
                    event=Event.FUSE_BLOWN,
                    relation_id=owner,
                    severity=Event.FUSE_BLOWN.severity,
                    payload=payload,
                    now=now,
                )

    def record_skips(self, members: Sequence[Member], verdicts: Sequence[Verdict], started: datetime) -> None:
        """Enter what was held back, with the whole verdict; once, however many ticks it lasts.

        Not who asked and found another at work: the refresh that is at work has its own row.
        """
        if self.is_manual and any(map(_is_locked, verdicts)):
            return
        now = self.warehouse.clock.now()
        with self.warehouse.catalog.write() as tx:
            for member, verdict in zip(members, verdicts, strict=True):
                latest = history.recent(tx, member.stream.relation.id, limit=1)
                if latest and is_same_skip(latest[0], verdict):
                    continue
                history.record(
                    tx,
                    relation_id=member.stream.relation.id,
                    name=str(member.name),
                    action=Action.SKIP,
                    status=Outcome.SKIPPED,
                    initiated_by=self.initiated_by,
                    started_at=started,
                    ended_at=now,
                    version_before=member.stream.version,
                    version_after=member.stream.version,
                    reason=skip_reason(verdict),
                    details=verdict_details(verdict),
                )


def skip_reason(verdict: Verdict) -> str:
    """Why a refresh was held back, as the history says it."""
    decisive = verdict.decisive
    return decisive.reason if decisive.reason.startswith(decisive.gate) else f"{decisive.gate}: {decisive.reason}"


def verdict_details(verdict: Verdict) -> dict[str, object]:
    """A verdict as part of a history row's details."""
    return {"verdict": verdict.to_json(), "gate": verdict.decisive.gate}


def is_same_skip(record: RefreshRecord, verdict: Verdict) -> bool:
    """Whether the history says so already."""
    return record.action is Action.SKIP and record.reason == skip_reason(verdict)


def _as_unit(members: Sequence[Member], verdicts: Sequence[Verdict]) -> list[Verdict]:
    found = held_together({str(member.name): verdict for member, verdict in zip(members, verdicts, strict=True)})
    return [found[str(member.name)] for member in members]


def _all(verdict: Verdict) -> list[Verdict]:
    return [verdict, *(found for child in verdict.children for found in _all(child))]


_HINTS: Mapping[str, str] = {
    "fuse": "look at the change with inspect_fuse('{0}'), then reset_fuse('{0}', action => 'apply', 'reinitialize' "
    "or 'skip_changes'); refresh with force to let it through",
    "source_gate": "ungate_source when the load is done, or refresh with force",
    "watermark": "advance_watermark for the source that lags, or refresh with force",
}


def refused(member: Member, verdict: Verdict) -> Gated:
    """The error for a statement that a gate of a stream table which would follow it does not let pass."""
    decisive = verdict.decisive
    owner = str(decisive.details.get("owner", member.name))
    hint = "nothing was changed"
    if decisive.gate == "fuse":
        mode = f"ALTER STREAM TABLE {owner} SET (fuse = 'none')"
        off = mode if owner == str(member.name) else f"CALL trickle.set_source_fuse('{owner}', 'none')"
        hint += f": change less at once, or take the fuse out for it: {off}"
    return Gated(
        f"the statement is refused by the {decisive.gate.replace('_', ' ')} of {owner}: {member.name} would follow it",
        detail=decisive.reason,
        hint=hint,
    )


def gated(member: Member, verdict: Verdict) -> TrickleError:
    """The error for somebody who asked for a refresh that a gate holds back."""
    decisive = verdict.decisive
    if _is_locked(verdict):
        # The same error as for one that began beside the other and came second at the commit.
        return ConcurrentModification(
            f"another refresh of {member.name} is at work",
            detail=decisive.reason,
            hint="try again when it has ended; it may have brought all that you want",
        )
    hint = _HINTS.get(decisive.gate, "why_not_refreshed('{0}') tells what all gates say")
    return Gated(
        f"the refresh of {member.name} is held back by its {decisive.gate.replace('_', ' ')}",
        detail=decisive.reason,
        hint=hint.format(member.name),
    )


def _is_locked(verdict: Verdict) -> bool:
    return verdict.decisive.gate == LockGate.name
