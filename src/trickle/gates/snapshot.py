"""Snapshot: a group that was declared REPEATABLE_READ shows one cut of all its sources.

Members of such a group need not share a source, so no diamond connects them. Each member must reflect every base source
at the position of the cut; then they all agree. A way through a stream table that was not refreshed in this tick, or
that is held back, brings an older position.
"""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip


class SnapshotGate:
    """Whether the table, as a member of its unit, reflects the cut."""

    name = "snapshot"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        if table.manual:
            return proceed(self.name, "it is refreshed alone")
        unit = facts.unit
        if unit.isolation != "REPEATABLE_READ":
            return proceed(self.name, "its unit promises no snapshot of all sources")
        for way in facts.paths:
            cut = unit.cut.get(way.source, way.position)
            if way.position != cut:
                reason = f"{way.source} is at {way.position} through {way.through}, and at {cut} in the cut"
                return skip(self.name, reason, source=way.source, through=way.through)
        return proceed(self.name, "it reflects the cut of its unit")
