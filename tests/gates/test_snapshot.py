"""A declared group shows one cut."""

from __future__ import annotations

from trickle.gates.facts import Path, UnitFacts
from trickle.gates.snapshot import SnapshotGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import Given, a_table, tried

STRICT = UnitFacts("REFRESH_GROUP", ("a", "b"), "REPEATABLE_READ", cut={"orders": "5", "lines": "7"})


def test_a_member_that_reflects_the_cut_goes_on() -> None:
    ways = [Path("orders", "orders", "5"), Path("lines", "line_summary", "7")]
    assert tried(SnapshotGate(), unit=STRICT, paths=ways).proceeds


def test_a_member_that_reads_an_older_position_waits_and_names_both() -> None:
    ways = [Path("orders", "orders", "5"), Path("lines", "line_summary", "6")]
    found = tried(SnapshotGate(), unit=STRICT, paths=ways)
    assert found.decision is Decision.SKIP
    assert found.reason == "lines is at 6 through line_summary, and at 7 in the cut"


def test_a_unit_that_promises_nothing_is_not_looked_at() -> None:
    facts = Given(unit=UnitFacts("ATOMIC_GROUP", ("a", "b")))
    assert SnapshotGate().evaluate(a_table(), facts).proceeds
    assert facts.asked == ["unit"]


def test_a_refresh_by_hand_is_of_one_table() -> None:
    assert tried(SnapshotGate(), table=a_table(manual=True)).proceeds
