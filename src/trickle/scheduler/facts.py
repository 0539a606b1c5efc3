"""The facts that a tick knows without asking anybody, for the gates of one stream table: pure.

What is dear to find out (how much a fuse has to judge) is left to the refresh itself, which asks all gates again; a
fuse that is blown is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from trickle.catalog.records import Schedulable
from trickle.dag.units import Unit
from trickle.gates.facts import (
    Delta,
    Due,
    FuseFacts,
    FuseRating,
    GatedSource,
    HeldUpstream,
    Lock,
    Path,
    SourceMove,
    TableFacts,
    UnitFacts,
    UserAnswer,
    Volume,
    WatermarkGroup,
)
from trickle.scheduler.state import State

_UNKNOWN = "unknown"
"""The position of a source that moves in this tick, or that cannot be looked at."""


def table_facts(table: Schedulable, *, tiered: bool) -> TableFacts:
    """What gates know of the stream table itself."""
    return TableFacts(
        name=str(table.name),
        relation_id=table.id,
        status=table.status.value,
        populated=table.populated,
        needs_reinitialize=table.needs_reinitialize,
        always_refresh=table.always_refresh,
        tier=str(table.options.get("tier", "hot")) if tiered else "hot",
    )


def unit_facts(state: State, unit: Unit[int]) -> UnitFacts:
    """What gates know of the unit."""
    dag = state.definitions.dag
    base = {source for member in unit.members for source in dag.base_sources(member)}
    return UnitFacts(
        kind=unit.kind.value,
        members=[str(state.tables[member].name) for member in unit.members],
        isolation=unit.isolation,
        cut={state.definitions.name(source): state.here[source] for source in sorted(base) if source in state.here},
    )


@dataclass(frozen=True)
class TickFacts:
    """The facts of one stream table."""

    state: State
    own_unit: Unit[int]
    table: Schedulable
    due: Due
    changing: AbstractSet[int]
    """Stream tables that changed in this tick, or will in this unit."""
    held: Mapping[int, HeldUpstream]

    @property
    def now(self) -> datetime:
        return self.state.now

    @property
    def cut_at(self) -> datetime | None:
        return self.state.now

    @property
    def _reads(self) -> list[int]:
        return sorted(self.state.definitions.dag.streams[self.table.id].reads)

    @property
    def lock(self) -> Lock:
        record = self.state.running.get(self.table.id)
        if record is None:
            return Lock()
        return Lock(f"pid {record.details.get('pid')} on {record.details.get('host')}", record.started_at)

    @property
    def sources(self) -> Sequence[SourceMove]:
        return [self._move(source) for source in self._reads]

    def _move(self, source: int) -> SourceMove:
        known = self.state.definitions
        is_stream = source in known.dag.streams
        now = self.state.here.get(source)
        if source in self.changing or (now is None and not is_stream):
            now = _UNKNOWN
        before = self.table.frontier.get(source)
        if source not in self.state.moved[self.table.id] and source not in self.changing:
            now = before
        return SourceMove(known.name(source), source, before, now, None, None, exact=False, is_stream_table=is_stream)

    @property
    def gated_sources(self) -> Sequence[GatedSource]:
        gated, above = self.state.definitions.gated, self.state.definitions.dag.above[self.table.id]
        return [
            GatedSource(str(gate.name), gate.gated_at, gate.gated_by, gate.reason)
            for source, gate in sorted(gated.items())
            if source in above
        ]

    @property
    def held_upstream(self) -> Sequence[HeldUpstream]:
        return [self.held[source] for source in self._reads if source in self.held]

    @property
    def fuses(self) -> Sequence[FuseFacts]:
        guarded = {self.table.id} | self.state.definitions.dag.base_sources(self.table.id)
        return [
            FuseFacts(str(fuse.name), FuseRating(), blown=True, blown_at=fuse.blown_at, blow_reason=fuse.blow_reason)
            for owner, fuse in sorted(self.state.blown.items())
            if owner in guarded
        ]

    def volume(self, owner: str) -> Volume | None:  # noqa: ARG002 - as the protocol has it
        return None

    def exact_volume(self, owner: str) -> Volume:  # noqa: ARG002 - as the protocol has it
        return Volume(0, 0)

    @property
    def watermark_groups(self) -> Sequence[WatermarkGroup]:
        if self._has_fuse:
            return []  # The fuse comes first, and is the refresh's to ask.
        base = self.state.definitions.dag.base_sources(self.table.id)
        return [group for sources, group in self.state.watermarked if not sources.isdisjoint(base)]

    @property
    def _has_fuse(self) -> bool:
        """Whether a fuse guards the table, or another one of its unit: that one would hold this one too."""
        dag, default = self.state.definitions.dag, self.state.definitions.settings.fuse_default
        modes = [self.state.tables[member].options.get("fuse", default) for member in self.own_unit.members]
        bases = {source for member in self.own_unit.members for source in dag.base_sources(member)}
        return any(mode != "none" for mode in modes) or not self.state.fused.isdisjoint(bases)

    @property
    def paths(self) -> Sequence[Path]:
        return []

    @property
    def unit(self) -> UnitFacts:
        return unit_facts(self.state, self.own_unit)

    @property
    def delta(self) -> Delta:
        return Delta(0, 0)

    @property
    def user_answers(self) -> Sequence[UserAnswer]:
        return []
