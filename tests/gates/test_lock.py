"""Who comes second does not wait."""

from __future__ import annotations

from datetime import UTC, datetime

from trickle.gates.facts import Lock
from trickle.gates.lock import LockGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import tried


def test_a_free_table_goes_on() -> None:
    assert tried(LockGate(), lock=Lock()).proceeds


def test_a_table_that_somebody_works_on_is_left_to_them() -> None:
    found = tried(LockGate(), lock=Lock("pid 12 on host", datetime(2026, 1, 1, tzinfo=UTC)))
    assert found.decision is Decision.SKIP
    assert found.reason == "pid 12 on host works on it since 2026-01-01 00:00:00 UTC"
