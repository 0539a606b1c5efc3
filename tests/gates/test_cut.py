"""A tick refreshes to its cut."""

from __future__ import annotations

from datetime import UTC, datetime

from trickle.gates.cut import CutGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import a_table, tried


def test_a_tick_refreshes_to_its_cut() -> None:
    found = tried(CutGate(), cut_at=datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert found.proceeds
    assert found.reason == "sources are read as of 2026-01-01 12:00:00 UTC"


def test_a_refresh_by_hand_needs_no_cut_and_one_of_the_scheduler_does() -> None:
    assert tried(CutGate(), table=a_table(manual=True), cut_at=None).proceeds
    assert tried(CutGate(), cut_at=None).decision is Decision.SKIP
