"""Status: a table that is suspended, by hand or because it failed too often, waits until somebody resumes it.

One that failed and is not suspended yet is tried again: what was wrong may have been put right.
"""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, block, proceed


class StatusGate:
    """Whether the table is being kept."""

    name = "status"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        match table.status:
            case "SUSPENDED":
                reason = "it is suspended" + (f": {table.last_error}" if table.last_error else "")
                return block(self.name, reason, status=table.status, last_error=table.last_error)
            case "ERROR":
                return proceed(self.name, "it failed, and is tried again", last_error=table.last_error)
            case status:
                return proceed(self.name, f"it is {status.lower()}")
