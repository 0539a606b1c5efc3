"""What every gate is."""

from __future__ import annotations

from typing import Protocol

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict


class Gate(Protocol):
    """A question that a refresh has to pass. It asks for as few facts as it can, the cheap ones first."""

    @property
    def name(self) -> str: ...

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        """Whether the refresh of the table may go on, and why."""
        ...
