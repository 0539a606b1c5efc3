"""Suspended tables wait for somebody."""

from __future__ import annotations

import pytest

from trickle.gates.status import StatusGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import a_table, tried


@pytest.mark.parametrize("status", ["ACTIVE", "INITIALIZING", "ERROR"])
def test_a_table_that_is_kept_goes_on_also_after_an_error(status: str) -> None:
    assert tried(StatusGate(), table=a_table(status=status, last_error="disk full")).proceeds


def test_a_suspended_table_is_blocked_also_by_hand() -> None:
    found = tried(StatusGate(), table=a_table(status="SUSPENDED", last_error="disk full", manual=True))
    assert found.decision is Decision.BLOCK
    assert found.reason == "it is suspended: disk full"
    assert found.details["last_error"] == "disk full"
    assert tried(StatusGate(), table=a_table(status="SUSPENDED")).reason == "it is suspended"
