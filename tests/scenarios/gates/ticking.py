"""A warehouse whose time is the test's: every tick is compared with the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.catalog import relations, streams
from trickle.refresh.outcome import RefreshResult
from trickle.sources.lake import LakePosition
from trickle.sql.names import table_name
from trickle.tables.views import HistoryRow
from trickle.testing import FakeClock, check


@dataclass
class Ticking:
    """A warehouse with a clock that moves a minute before each tick."""

    t: Trickle
    clock: FakeClock

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def tick(self, *, seconds: float = 60, checked: bool = True) -> dict[str, str]:
        """Tick, compare every stream table with its query, and say what became of those that were asked."""
        return {name: result.action for name, result in self.results(seconds=seconds, checked=checked).items()}

    def results(self, *, seconds: float = 60, checked: bool = True) -> dict[str, RefreshResult]:
        """The same with everything that is known of each."""
        self.clock.advance(timedelta(seconds=seconds))
        found = self.t.tick()
        if checked:
            check(self.t)
        assert len({result.name for result in found}) == len(found), "each at most once in a tick"
        return {result.name: result for result in found}

    def why(self, name: str) -> str:
        """What the newest row of the history says of a stream table that was held back."""
        last = self.t.refresh_history(name, limit=1)[0]
        assert last.action == "SKIP", f"{name} was not held back: {last.action}"
        return last.reason or ""

    def computed(self, name: str) -> list[HistoryRow]:
        """The refreshes of a stream table by ticks that were not held back, oldest first."""
        rows = [row for row in self.t.refresh_history(name) if row.initiated_by == "SCHEDULER" and row.action != "SKIP"]
        return rows[::-1]


def frontier(t: Trickle, name: str) -> Mapping[str, int]:
    """The versions of its sources that a stream table reflects."""
    with t.warehouse.catalog.read() as tx:
        found = streams.get(tx, table_name(name)).frontier
        names = {relation.id: str(relation.name) for relation in relations.listing(tx)}
    return {names[source]: LakePosition.parse(position).version for source, position in found.items()}


@contextmanager
def written_meanwhile(t: Trickle, statement: str) -> Iterator[None]:
    """Have a statement run once, when the first refresh of a tick has begun."""
    left = [statement]

    def watch(step: Step, member: int) -> None:
        if step is Step.STARTED and left:
            t.sql(left.pop())

    observe(watch)
    try:
        yield
    finally:
        observe(None)
    assert not left, "nothing was refreshed meanwhile"
