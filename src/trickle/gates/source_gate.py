"""Source gate: while somebody loads a source, nothing below it is refreshed; the whole load then shows at once."""

from __future__ import annotations

from trickle.gates.facts import Facts, GatedSource, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip
from trickle.gates.words import moment


class SourceGate:
    """Whether a source, direct or further upstream, is being loaded."""

    name = "source_gate"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        gated = facts.gated_sources
        if not gated:
            return proceed(self.name, "no source is gated")
        return skip(self.name, "; ".join(_words(source) for source in gated), sources=[source.name for source in gated])


def _words(source: GatedSource) -> str:
    by = "" if source.by is None else f" by {source.by}"
    since = "" if source.since is None else f" since {moment(source.since)}"
    why = "" if source.reason is None else f" ({source.reason})"
    return f"source {source.name} is gated{by}{since}{why}"
