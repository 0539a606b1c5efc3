"""Gates of the user."""

from __future__ import annotations

import pytest

from trickle.gates.facts import UserAnswer
from trickle.gates.user import UserGates, answered
from trickle.gates.verdict import Decision
from trickle.testing.gates import tried


@pytest.mark.parametrize(
    "returned, passed, reason",
    [
        (True, True, "it said yes"),
        (False, False, "it said no"),
        ((True, "99 % are filled"), True, "99 % are filled"),
        ((False, "no rows"), False, "no rows"),
        ((False, ""), False, "it said no"),
        (None, False, "it answered None, neither true nor false"),
        (1, False, "it answered 1, neither true nor false"),
        ("yes", False, "it answered 'yes', neither true nor false"),
        (("a", "b", "c"), False, "it answered ('a', 'b', 'c'), neither true nor false"),
    ],
)
def test_only_true_lets_a_refresh_pass(returned: object, passed: bool, reason: str) -> None:
    assert answered("mine", returned) == UserAnswer("mine", passed, reason)


def test_one_gate_that_says_no_holds_the_change() -> None:
    found = tried(UserGates(), user_answers=[UserAnswer("a", True, "fine"), UserAnswer("b", False, "no rows")])
    assert found.decision is Decision.SKIP
    assert found.decisive.reason == "user gate b: no rows"
    assert len(found.children) == 2


def test_without_gates_of_your_own_the_change_goes_on() -> None:
    assert tried(UserGates(), user_answers=[]).proceeds
