"""What a refresh will do: decided from facts, without acting (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trickle.catalog.records import Action, RefreshMode
from trickle.refresh.cost import Sample, estimate


@dataclass(frozen=True)
class SourceFact:
    """How far a source has moved since the stream table's last refresh."""

    name: str
    before: str | None
    now: str | None
    changed_rows: int | None
    """Known number of changed rows; None when only reading would tell."""
    counted_rows: int | None = None
    """The best count that the log gives: never less than there are."""
    source_rows: int = 0
    inserted: int | None = None
    deleted: int | None = None
    """The parts of that count."""

    @property
    def moved(self) -> bool:
        return self.before != self.now

    @property
    def changed(self) -> bool:
        return self.moved and self.changed_rows != 0


@dataclass(frozen=True)
class Keeping:
    """How a stream table can be kept, and what that has cost so far."""

    mode: RefreshMode = RefreshMode.FULL
    is_kept: bool = False
    """Whether what is stored can be changed by changes: its layout is known, and so is what it reflects."""
    why_not: str = ""
    """Why it is kept in full only, as a code and words."""
    max_ratio: float = 0.15
    samples: Sequence[Sample] = ()
    is_behind: bool = False
    """Whether full refreshes left inner tables behind."""
    drift_due: bool = False
    """Whether floating sums were added to for long enough."""


@dataclass(frozen=True)
class Facts:
    """Everything the choice depends on."""

    populated: bool
    needs_reinitialize: bool
    always_refresh: bool
    force: bool
    sources: Mapping[int, SourceFact] = field(default_factory=dict)
    keeping: Keeping = field(default_factory=Keeping)


@dataclass(frozen=True)
class Choice:
    """The action, and why it was chosen."""

    action: Action
    reason: str
    moves: bool
    """Whether the frontier moves although nothing is computed."""
    code: str = ""
    """A short name of the reason for which a refresh that might go by changes does not."""


def choose(facts: Facts) -> Choice:
    """Nothing to do, a refresh by changes, a full refresh, or a rebuild."""
    moved = any(source.moved for source in facts.sources.values())
    if facts.needs_reinitialize:
        return Choice(Action.REINITIALIZE, "the definition or a source was changed", moved, "REDEFINED")
    if not facts.populated:
        return Choice(Action.FULL, "first fill", moved, "FIRST_FILL")
    if facts.force:
        return Choice(Action.FULL, "forced", moved, "FORCED")
    changed = sorted(source.name for source in facts.sources.values() if source.changed)
    if changed:
        return _way(facts, "changed: " + ", ".join(changed), moved)
    if facts.always_refresh:
        return _way(facts, "the query depends on time or chance", moved)
    return Choice(Action.NO_DATA, "no source has changed", moved)


def _way(facts: Facts, changed: str, moved: bool) -> Choice:
    """By changes or in full."""
    keeping = facts.keeping
    if keeping.mode is RefreshMode.FULL:
        return Choice(Action.FULL, changed, moved)
    if not keeping.is_kept:
        code, _, words = keeping.why_not.partition(": ")
        why = f"; in full, as {words}" if words else ""
        return Choice(Action.FULL, f"{changed}{why}", moved, code)
    if keeping.drift_due:
        return Choice(Action.FULL, f"{changed}; in full, to compute floating sums anew", moved, "DRIFT_RESET")
    if keeping.mode in (RefreshMode.DIFFERENTIAL, RefreshMode.IMMEDIATE):
        return Choice(Action.DIFFERENTIAL, changed, moved)
    sources = list(facts.sources.values())
    counts = [source.counted_rows for source in sources if source.changed]
    total = None if any(count is None for count in counts) else sum(count or 0 for count in counts)
    rows = sum(source.source_rows for source in sources)
    found = estimate(keeping.samples, total, rows, keeping.max_ratio, is_behind=keeping.is_behind)
    if found.in_full:
        return Choice(Action.FULL, f"{changed}; in full, as {found.reason}", moved, found.code)
    return Choice(Action.DIFFERENTIAL, f"{changed}; {found.reason}", moved, found.code)
