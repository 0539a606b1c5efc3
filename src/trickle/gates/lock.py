"""Lock: who comes second does not wait. The next tick asks again, and then finds less to do or nothing."""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip
from trickle.gates.words import moment, stamp


class LockGate:
    """Whether somebody else works on the table."""

    name = "lock"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        lock = facts.lock
        if lock.held_by is None:
            return proceed(self.name, "nobody works on it")
        since = "" if lock.since is None else f" since {moment(lock.since)}"
        return skip(self.name, f"{lock.held_by} works on it{since}", held_by=lock.held_by, since=stamp(lock.since))
