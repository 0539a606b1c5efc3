"""Upstream: a table whose sources did not change has nothing to do, and one whose sources are held waits with them.

A stream table upstream that is held stands at older positions than the cut. Its readers wait although other sources of
theirs have moved: they would mix two times. A refresh by hand is for the table as it stands, so this gate lets it pass.
"""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip


class UpstreamGate:
    """Whether there is anything new to read, and nothing that is held back."""

    name = "upstream"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        if table.manual:
            return proceed(self.name, "somebody asked for it")
        held = facts.held_upstream
        if held:
            reason = "; ".join(f"upstream {one.name} is held: {one.reason}" for one in held)
            return skip(self.name, reason, held=[one.name for one in held])
        sources = facts.sources
        absent = [source.name for source in sources if source.now is None]
        if absent:
            return skip(self.name, f"{', '.join(absent)} has no contents at the cut", absent=absent)
        if not table.populated:
            return proceed(self.name, "it was never filled")
        if table.needs_reinitialize:
            return proceed(self.name, "it is to be computed anew")
        changed = [source.name for source in sources if source.changed]
        if changed:
            return proceed(self.name, f"changed: {', '.join(changed)}", changed=changed)
        if table.always_refresh:
            return proceed(self.name, "its query depends on time or chance")
        return skip(self.name, "no source has changed")
