"""What a refresh will do: decided from facts, without acting (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trickle.catalog.records import Action, RefreshMode


@dataclass(frozen=True)
class SourceFact:
    """How far a source has moved since the stream table's last refresh."""

    name: str
    before: str | None
    now: str | None
    changed_rows: int | None
    """Known number of changed rows; None when only reading would tell."""

    @property
    def moved(self) -> bool:
        return self.before != self.now

    @property
    def changed(self) -> bool:
        return self.moved and self.changed_rows != 0


@dataclass(frozen=True)
class Facts:
    """Everything the choice depends on."""

    populated: bool
    needs_reinitialize: bool
    always_refresh: bool
    force: bool
    mode: RefreshMode = RefreshMode.FULL
    is_kept: bool = False
    """Whether what is stored can be changed by changes: its layout is known, and so is what it reflects."""
    sources: Mapping[int, SourceFact] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """The action, and why it was chosen."""

    action: Action
    reason: str
    moves: bool
    """Whether the frontier moves although nothing is computed."""


def choose(facts: Facts) -> Choice:
    """Nothing to do, a full refresh, or a rebuild."""
    moved = any(source.moved for source in facts.sources.values())
    if facts.needs_reinitialize:
        return Choice(Action.REINITIALIZE, "the definition or a source was changed", moved)
    if not facts.populated:
        return Choice(Action.FULL, "first fill", moved)
    if facts.force:
        return Choice(Action.FULL, "forced", moved)
    changed = sorted(source.name for source in facts.sources.values() if source.changed)
    if changed:
        by_changes = facts.is_kept and facts.mode in (RefreshMode.DIFFERENTIAL, RefreshMode.AUTO)
        action = Action.DIFFERENTIAL if by_changes else Action.FULL
        return Choice(action, "changed: " + ", ".join(changed), moved)
    if facts.always_refresh:
        return Choice(Action.FULL, "the query depends on time or chance", moved)
    return Choice(Action.NO_DATA, "no source has changed", moved)
