"""What gates ask for. Facts are gathered when a gate first asks, once, and then stand for the whole evaluation.

A gate sees the protocols below and nothing else: no catalog, no lake, no clock. Who gathers them (``refresh/facts.py``)
decides how; a test hands in plain values (``trickle.testing.gates.Given``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True)
class TableFacts:
    """The stream table that the gates are asked about."""

    name: str
    relation_id: int
    status: str
    """INITIALIZING, ACTIVE, SUSPENDED or ERROR."""
    populated: bool
    needs_reinitialize: bool
    always_refresh: bool
    """Whether its query depends on time or chance, so that it changes without its sources."""
    last_error: str | None = None
    tier: str = "hot"
    manual: bool = False
    """Whether somebody asked for this refresh; the schedule and the tier do not matter then."""
    force: bool = False
    """Whether somebody insists: gates are asked and answer, and the refresh happens all the same."""


@dataclass(frozen=True)
class Lock:
    """Who works on the table, if anybody."""

    held_by: str | None = None
    """Such as ``pid 12 on host``; None when nobody does."""
    since: datetime | None = None


@dataclass(frozen=True)
class Due:
    """When the table is due, by its schedule."""

    schedule: str
    """The schedule in words: ``5s``, a cron expression, ``calculated (30s, from order_report)``."""
    due: bool
    next_at: datetime | None = None
    """When it will be due next; None when it never will by itself."""


@dataclass(frozen=True)
class SourceMove:
    """How far one source lies ahead of the table's frontier, up to the cut."""

    name: str
    relation_id: int
    before: str | None
    """The position in the frontier; None for a source that was never read."""
    now: str | None
    """The position in the cut."""
    inserted: int | None
    """Changed rows as the log tells them: never less than there are; None when the log does not say."""
    deleted: int | None
    exact: bool
    """Whether the counts are the net change itself."""
    rows: int = 0
    """Rows of the source at the cut."""
    is_stream_table: bool = False

    @property
    def moved(self) -> bool:
        return self.before != self.now

    @property
    def changed(self) -> bool:
        """Whether rows may have changed."""
        nothing = self.exact and self.inserted == 0 and self.deleted == 0
        return self.moved and not nothing


@dataclass(frozen=True)
class GatedSource:
    """A source that somebody is loading."""

    name: str
    since: datetime | None
    by: str | None
    reason: str | None


@dataclass(frozen=True)
class HeldUpstream:
    """A stream table upstream that did not move in this tick although it should have."""

    name: str
    decision: str
    reason: str


@dataclass(frozen=True)
class FuseRating:
    """What a fuse stands; see ``gates/fuse.py``."""

    mode: str = "none"
    """none, fixed or adaptive."""
    ceiling: int | None = None
    max_ratio: float | None = None
    sensitivity: float = 3.0
    window_size: int = 20
    baseline: str = "window"
    """window or ewma."""
    cold_start_ceiling: int = 0
    """Changed rows that blow an adaptive fuse without a baseline; 0 for none."""


@dataclass(frozen=True)
class Volume:
    """Changed rows that wait to be applied."""

    inserted: int
    deleted: int

    @property
    def total(self) -> int:
        return self.inserted + self.deleted


@dataclass(frozen=True)
class FuseFacts:
    """A fuse: of the table itself, or of a source somewhere upstream, which guards everything below it."""

    owner: str
    """The table or source that has it."""
    rating: FuseRating
    blown: bool
    blown_at: datetime | None = None
    blow_reason: str | None = None
    passes_once: bool = False
    """Whether it was reset with ``apply`` or ``reinitialize`` and no refresh came since."""
    samples: Sequence[Volume] = ()
    """The volumes of past refreshes, oldest first."""
    delta_samples: Sequence[Volume] = ()
    """What past refreshes changed in the table itself, oldest first: the release phase compares the staged delta."""
    rows: int = 0
    """What a ratio is taken of: rows of the sources, or of the source itself, before the change."""
    table_rows: int = 0
    """The same for the staged delta: rows of the stream table."""


@dataclass(frozen=True)
class Watermark:
    """How far a source is complete."""

    source: str
    watermark: datetime | None
    """None when its loader never said."""
    position: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class WatermarkGroup:
    """Sources whose watermarks must lie within a tolerance of each other."""

    name: str
    tolerance: timedelta
    mode: str
    """gate: wait until aligned. hold_back: refresh what is complete everywhere."""
    members: Sequence[Watermark] = ()


@dataclass(frozen=True)
class Delta:
    """The staged change of the table, net: rows that will come and go if the gates let it, however it was computed."""

    inserted: int
    deleted: int


@dataclass(frozen=True)
class UserAnswer:
    """What a gate of the user said."""

    name: str
    passed: bool
    reason: str


@dataclass(frozen=True)
class Path:
    """The position of a base source as one of the table's own sources reflects it."""

    source: str
    """The base source."""
    through: str
    """The stream table that reflects it, or the base source itself where the table reads it directly."""
    position: str


@dataclass(frozen=True)
class UnitFacts:
    """The unit that the table is refreshed in."""

    kind: str = "SINGLETON"
    members: Sequence[str] = ()
    isolation: str = "READ_COMMITTED"
    blocked_by: Mapping[str, str] = field(default_factory=dict)
    """Members that the gates held back, with the reason."""
    cut: Mapping[str, str] = field(default_factory=dict)
    """The positions of base sources that the unit is refreshed to."""


class Facts(Protocol):
    """Everything a gate may ask; each is gathered when it is first asked for."""

    @property
    def now(self) -> datetime: ...
    @property
    def cut_at(self) -> datetime | None:
        """When the tick's cut was taken; None outside of a tick."""
        ...

    @property
    def lock(self) -> Lock: ...
    @property
    def due(self) -> Due: ...
    @property
    def sources(self) -> Sequence[SourceMove]: ...
    @property
    def gated_sources(self) -> Sequence[GatedSource]:
        """Gated sources, direct and further upstream."""
        ...

    @property
    def held_upstream(self) -> Sequence[HeldUpstream]: ...
    @property
    def fuses(self) -> Sequence[FuseFacts]:
        """The table's own fuse first, then those of its sources, direct and further upstream."""
        ...

    def volume(self, owner: str) -> Volume | None:
        """What waits for the owner of a fuse, as the log tells it: never less than there is; None when unknown."""
        ...

    def exact_volume(self, owner: str) -> Volume:
        """The net change that waits, counted by reading it."""
        ...

    @property
    def watermark_groups(self) -> Sequence[WatermarkGroup]:
        """The groups that have a source of the table, direct or further upstream."""
        ...

    @property
    def paths(self) -> Sequence[Path]: ...
    @property
    def unit(self) -> UnitFacts: ...
    @property
    def delta(self) -> Delta:
        """Only in the release phase."""
        ...

    @property
    def user_answers(self) -> Sequence[UserAnswer]:
        """Only in the release phase."""
        ...
