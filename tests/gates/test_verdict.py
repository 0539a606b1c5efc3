"""Verdicts keep their children, and survive the history."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from trickle.gates.verdict import Decision, Verdict, block, proceed, skip, together

leaves = st.builds(
    Verdict,
    gate=st.sampled_from(["status", "fuse", "lock"]),
    decision=st.sampled_from(Decision),
    reason=st.text(max_size=5),
    details=st.dictionaries(st.text(max_size=3), st.integers() | st.none() | st.text(max_size=3), max_size=2),
)
verdicts = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(lambda found: together("phase", found)))


@given(verdicts)
def test_a_verdict_comes_back_from_json_as_it_was(verdict: Verdict) -> None:
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@given(st.lists(verdicts, min_size=1, max_size=4))
def test_the_strictest_decision_holds_and_its_reason_is_told(found: list[Verdict]) -> None:
    whole = together("admit", found)
    assert whole.decision.rank == max(one.decision.rank for one in found)
    assert whole.decisive.decision is whole.decision
    assert not whole.decisive.children or whole.proceeds
    if not whole.proceeds:
        assert whole.reason in {one.reason for one in found if one.decision is whole.decision}


def test_a_tree_is_told_in_words() -> None:
    whole = together("admit", [proceed("status"), skip("schedule", "not due"), block("fuse", "blown")])
    assert list(whole.lines()) == [
        "admit: block, blown",
        "  status: proceed",
        "  schedule: skip, not due",
        "  fuse: block, blown",
    ]
