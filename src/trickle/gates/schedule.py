"""Schedule: a table is refreshed when it is due. A refresh by hand does not wait; a frozen table is never due."""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts
from trickle.gates.verdict import Verdict, proceed, skip
from trickle.gates.words import moment, stamp


class ScheduleGate:
    """Whether the table is due."""

    name = "schedule"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        if table.manual:
            return proceed(self.name, "somebody asked for it")
        if table.tier == "frozen":
            return skip(self.name, "tier frozen is refreshed by hand only", tier=table.tier)
        due = facts.due
        if due.due:
            return proceed(self.name, f"due by its schedule, {due.schedule}", schedule=due.schedule)
        return skip(
            self.name,
            f"not due by its schedule, {due.schedule}; next at {moment(due.next_at)}",
            schedule=due.schedule,
            next_at=stamp(due.next_at),
        )
