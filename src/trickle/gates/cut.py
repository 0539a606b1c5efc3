"""Cut: in a tick, every refresh goes up to the positions that were captured once at its beginning.

Without a cut a tick's tables would each take the newest positions of their own moment, and a table that joins two of
them would see two times at once. Who asks for one table by hand gets the newest positions of that moment.
"""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip
from trickle.gates.words import moment, stamp


class CutGate:
    """Whether there is a cut to refresh to."""

    name = "cut"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        at = facts.cut_at
        if at is not None:
            return proceed(self.name, f"sources are read as of {moment(at)}", cut_at=stamp(at))
        if table.manual:
            return proceed(self.name, "sources are read as they are now")
        return skip(self.name, "no cut of the sources was taken")
