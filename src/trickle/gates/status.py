"""Status: a table that was suspended, or that failed too often, waits until somebody resumes it."""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, block, proceed

_HELD = {"SUSPENDED": "it is suspended", "ERROR": "it failed and is not retried"}


class StatusGate:
    """Whether the table is being kept."""

    name = "status"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:  # noqa: ARG002 - every gate is asked the same way
        held = _HELD.get(table.status)
        if held is None:
            return proceed(self.name, f"it is {table.status.lower()}")
        reason = held if table.last_error is None else f"{held}: {table.last_error}"
        return block(self.name, reason, status=table.status, last_error=table.last_error)
