"""Diamond: where several ways from one base source come together, they must bring it at one position.

Members of an atomic unit are refreshed together; what could still part the ways is a member that was held back, or a
way that is not in the unit. The table waits then, and keeps the last state in which its ways agreed.
"""

from __future__ import annotations

from collections.abc import Iterable

from trickle.gates.facts import Facts, Path, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip


class DiamondGate:
    """Whether the unit is whole, and the ways to the table agree."""

    name = "diamond"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        if table.manual:
            return proceed(self.name, "it is refreshed alone")
        for member, reason in sorted(facts.unit.blocked_by.items()):
            if member != table.name:
                return skip(self.name, f"{member} of its unit is held: {reason}", held=member)
        parted = _parted(facts.paths)
        if parted is not None:
            one, other = parted
            return skip(
                self.name,
                f"{one.source} is at {one.position} through {one.through} and at {other.position} through "
                f"{other.through}",
                source=one.source,
                through=[one.through, other.through],
            )
        return proceed(self.name, "all ways from its sources agree")


def _parted(paths: Iterable[Path]) -> tuple[Path, Path] | None:
    """The first two ways from one base source that bring it at different positions."""
    first: dict[str, Path] = {}
    for way in paths:
        other = first.setdefault(way.source, way)
        if other.position != way.position:
            return other, way
    return None
