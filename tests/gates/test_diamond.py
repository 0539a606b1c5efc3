"""Ways from one source must agree where they meet."""

from __future__ import annotations

from trickle.gates.diamond import DiamondGate
from trickle.gates.facts import Path, UnitFacts
from trickle.gates.verdict import Decision
from trickle.testing.gates import a_table, tried

LEFT = Path("orders", "order_summary", "5")


def test_ways_that_agree_go_on() -> None:
    ways = [LEFT, Path("orders", "line_report", "5"), Path("lines", "line_report", "9")]
    assert tried(DiamondGate(), unit=UnitFacts(), paths=ways).proceeds


def test_ways_that_part_wait_and_both_are_named() -> None:
    found = tried(DiamondGate(), unit=UnitFacts(), paths=[LEFT, Path("orders", "line_report", "4")])
    assert found.decision is Decision.SKIP
    assert found.reason == "orders is at 5 through order_summary and at 4 through line_report"
    assert found.details["through"] == ["order_summary", "line_report"]


def test_a_member_that_is_held_holds_its_unit() -> None:
    unit = UnitFacts("ATOMIC_GROUP", ("order_summary", "left"), blocked_by={"left": "its fuse is blown"})
    found = tried(DiamondGate(), unit=unit, paths=[LEFT])
    assert found.decision is Decision.SKIP
    assert found.reason == "left of its unit is held: its fuse is blown"


def test_a_member_does_not_wait_for_itself() -> None:
    unit = UnitFacts("ATOMIC_GROUP", ("order_summary",), blocked_by={"order_summary": "x"})
    assert tried(DiamondGate(), unit=unit, paths=[]).proceeds


def test_a_refresh_by_hand_is_of_one_table() -> None:
    assert tried(DiamondGate(), table=a_table(manual=True)).proceeds
