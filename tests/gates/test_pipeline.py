"""All gates in their order: what is asked, what is not, and who decides."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trickle.gates.facts import (
    Delta,
    Due,
    FuseFacts,
    FuseRating,
    GatedSource,
    HeldUpstream,
    Lock,
    Path,
    SourceMove,
    UnitFacts,
    UserAnswer,
    Volume,
    Watermark,
    WatermarkGroup,
)
from trickle.gates.pipeline import ADMIT, RELEASE, admit, release
from trickle.gates.verdict import Decision, Verdict
from trickle.testing.gates import Given, a_table

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FUSE = FuseFacts("order_summary", FuseRating("fixed", ceiling=10), blown=False)
OPEN: dict[str, Any] = {
    "cut_at": NOW,
    "lock": Lock(),
    "due": Due("5s", due=True),
    "gated_sources": [],
    "held_upstream": [],
    "sources": [SourceMove("orders", 2, "1", "2", 1, 0, exact=True)],
    "fuses": [FUSE],
    "volume": Volume(1, 0),
    "watermark_groups": [],
}
STAGED: dict[str, Any] = {
    "fuses": [FUSE],
    "delta": Delta(1, 0),
    "user_answers": [],
    "unit": UnitFacts(),
    "paths": [],
}
MISALIGNED = WatermarkGroup("etl", timedelta(), "gate", [Watermark("orders", NOW), Watermark("lines", None)])


def test_the_order_of_the_gates_is_that_of_the_design() -> None:
    names = ["cut", "status", "lock", "schedule", "source_gate", "upstream", "fuse", "watermark"]
    assert [gate.name for gate in ADMIT] == names
    assert [gate.name for gate in RELEASE] == ["fuse", "user", "snapshot", "diamond"]


def test_a_refresh_that_nothing_holds_has_the_answers_of_all_gates() -> None:
    verdict = admit(a_table(), Given(**OPEN))
    assert verdict.proceeds
    assert [child.gate for child in verdict.children] == [gate.name for gate in ADMIT]
    assert all(child.reason for child in verdict.children)


HELD: list[tuple[str, dict[str, Any], dict[str, Any], Decision, list[str]]] = [
    ("cut", {}, {"cut_at": None}, Decision.SKIP, ["cut_at"]),
    ("status", {"status": "SUSPENDED"}, {}, Decision.BLOCK, ["cut_at"]),
    ("lock", {}, {"lock": Lock("pid 1")}, Decision.SKIP, ["cut_at", "lock"]),
    ("schedule", {}, {"due": Due("5s", due=False)}, Decision.SKIP, ["cut_at", "lock", "due"]),
    (
        "source_gate",
        {},
        {"gated_sources": [GatedSource("orders", None, None, None)]},
        Decision.SKIP,
        ["cut_at", "lock", "due", "gated_sources"],
    ),
    (
        "upstream",
        {},
        {"held_upstream": [HeldUpstream("a", "BLOCK", "fuse")]},
        Decision.SKIP,
        ["cut_at", "lock", "due", "gated_sources", "held_upstream"],
    ),
    (
        "fuse",
        {},
        {"volume": Volume(11, 0), "exact_volume": Volume(11, 0)},
        Decision.BLOCK,
        ["cut_at", "lock", "due", "gated_sources", "held_upstream", "sources", "fuses", "volume", "exact_volume"],
    ),
    (
        "watermark",
        {},
        {"watermark_groups": [MISALIGNED]},
        Decision.SKIP,
        ["cut_at", "lock", "due", "gated_sources", "held_upstream", "sources", "fuses", "volume", "watermark_groups"],
    ),
]


@pytest.mark.parametrize("gate, table, facts, decision, asked", HELD, ids=[held[0] for held in HELD])
def test_a_gate_that_holds_decides_and_later_gates_ask_for_nothing(
    gate: str, table: dict[str, Any], facts: dict[str, Any], decision: Decision, asked: list[str]
) -> None:
    given = Given(**{**OPEN, **facts})
    verdict = admit(a_table(**table), given)
    assert verdict.decision is decision
    assert verdict.decisive.gate == verdict.children[-1].gate == gate
    assert given.asked == asked
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@pytest.mark.parametrize("gate, table, facts, decision, asked", HELD, ids=[held[0] for held in HELD])
def test_who_wants_to_know_all_hears_all_gates(
    gate: str, table: dict[str, Any], facts: dict[str, Any], decision: Decision, asked: list[str]
) -> None:
    verdict = admit(a_table(**table), Given(**{**OPEN, **facts}), everything=True)
    assert verdict.decision is decision
    assert [child.gate for child in verdict.children] == [gate.name for gate in ADMIT]
    assert [child.gate for child in verdict.children if not child.proceeds] == [gate]


@pytest.mark.parametrize("gate, table, facts, decision, asked", HELD, ids=[held[0] for held in HELD])
def test_force_passes_every_gate_and_keeps_what_it_said(
    gate: str, table: dict[str, Any], facts: dict[str, Any], decision: Decision, asked: list[str]
) -> None:
    verdict = admit(a_table(**table, force=True), Given(**{**OPEN, **facts}))
    assert verdict.proceeds
    held = [child for child in verdict.children if not child.proceeds]
    assert [child.gate for child in held] == [gate]
    assert verdict.reason == f"forced, although {held[0].reason}"
    assert len(verdict.children) == len(ADMIT)


def test_force_on_a_table_that_nothing_holds_changes_nothing() -> None:
    assert admit(a_table(force=True), Given(**OPEN)).reason == ""


def test_the_strictest_of_all_answers_is_told_first() -> None:
    facts = Given(**{**OPEN, "lock": Lock("pid 1"), "fuses": [FuseFacts("orders", FuseRating(), blown=True)]})
    verdict = admit(a_table(), facts, everything=True)
    assert verdict.decision is Decision.BLOCK
    assert verdict.decisive.gate == "fuse"


def test_a_refresh_by_hand_skips_schedule_tier_and_upstream_and_nothing_else() -> None:
    facts = {**OPEN, "cut_at": None, "due": Due("1h", due=False), "sources": []}
    by_hand = a_table(manual=True, tier="frozen")
    given = Given(**facts)
    assert admit(by_hand, given).proceeds
    assert not {"due", "held_upstream", "sources"} & set(given.asked)
    for held in (
        {"lock": Lock("pid 1")},
        {"gated_sources": [GatedSource("orders", None, None, None)]},
        {"fuses": [FuseFacts("orders", FuseRating(), blown=True)]},
        {"watermark_groups": [MISALIGNED]},
    ):
        assert not admit(by_hand, Given(**{**facts, **held})).proceeds


def test_a_staged_change_that_nothing_holds_is_released() -> None:
    verdict = release(a_table(), Given(**STAGED))
    assert verdict.proceeds
    assert [child.gate for child in verdict.children] == [gate.name for gate in RELEASE]


@pytest.mark.parametrize(
    "gate, facts, asked",
    [
        ("fuse", {"delta": Delta(0, 11)}, {"fuses", "delta"}),
        ("user", {"user_answers": [UserAnswer("mine", False, "no")]}, {"fuses", "delta", "user_answers"}),
        (
            "snapshot",
            {
                "unit": UnitFacts(isolation="REPEATABLE_READ", cut={"orders": "2"}),
                "paths": [Path("orders", "orders", "1")],
            },
            {"fuses", "delta", "user_answers", "unit", "paths"},
        ),
        (
            "diamond",
            {"paths": [Path("orders", "a", "1"), Path("orders", "b", "2")]},
            {"fuses", "delta", "user_answers", "unit", "paths"},
        ),
    ],
)
def test_a_staged_change_is_held_by_the_first_gate_that_says_so(
    gate: str, facts: dict[str, Any], asked: set[str]
) -> None:
    given = Given(**{**STAGED, **facts})
    verdict = release(a_table(), given)
    assert not verdict.proceeds
    assert verdict.children[-1].gate == gate
    assert set(given.asked) == asked
    assert release(a_table(force=True), Given(**{**STAGED, **facts})).proceeds
