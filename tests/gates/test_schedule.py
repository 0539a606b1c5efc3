"""Due or not."""

from __future__ import annotations

from datetime import UTC, datetime

from trickle.gates.facts import Due
from trickle.gates.schedule import ScheduleGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import Given, a_table, tried

LATER = Due("5s", due=False, next_at=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC))


def test_a_table_goes_on_when_it_is_due() -> None:
    assert tried(ScheduleGate(), due=Due("5s", due=True)).proceeds


def test_a_table_that_is_not_due_says_when_it_will_be() -> None:
    found = tried(ScheduleGate(), due=LATER)
    assert found.decision is Decision.SKIP
    assert found.reason == "not due by its schedule, 5s; next at 2026-01-01 00:00:05 UTC"


def test_a_frozen_table_is_never_due_and_nobody_looks_at_its_schedule() -> None:
    facts = Given()
    assert ScheduleGate().evaluate(a_table(tier="frozen"), facts).decision is Decision.SKIP
    assert facts.asked == []


def test_a_refresh_by_hand_does_not_wait_even_for_a_frozen_table() -> None:
    assert tried(ScheduleGate(), table=a_table(manual=True, tier="frozen")).proceeds
