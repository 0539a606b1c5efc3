"""The public tester for gates."""

from __future__ import annotations

import pytest

from trickle.errors import InvalidOption
from trickle.gates.facts import Facts, Lock
from trickle.gates.lock import LockGate
from trickle.gates.pipeline import admit
from trickle.gates.verdict import Decision
from trickle.testing.gates import Given, a_table, tried


def test_a_fact_that_is_not_given_is_named() -> None:
    with pytest.raises(InvalidOption, match="the gate asked for 'cut_at', which is not given"):
        admit(a_table(), Given())


def test_a_fact_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidOption, match="has no 'sorces'") as caught:
        Given(sorces=[])
    assert caught.value.hint == "did you mean 'sources'?"
    with pytest.raises(InvalidOption, match="has no 'stats'"):
        a_table(stats="ACTIVE")


def test_every_fact_can_be_given_and_is_handed_out() -> None:
    names = [name for name in dir(Facts) if not name.startswith("_")]
    given = Given(**{name: object() for name in names})
    for name in names:
        fact = getattr(given, name)
        assert (fact("orders") if callable(fact) else fact) is given._given[name]
    assert given.asked == names


def test_a_function_of_your_own_is_called_and_its_answer_read() -> None:
    def enough(name: str, rows: int) -> tuple[bool, str]:
        return rows > 3, f"{name} has {rows} rows"

    assert tried(enough, "order_summary", 4).proceeds
    found = tried(enough, "order_summary", 3)
    assert found.decision is Decision.SKIP
    assert found.reason == "user gate enough: order_summary has 3 rows"


def test_what_a_function_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        tried(lambda rows: 1 / rows > 1, 0)


def test_gates_and_functions_are_not_mixed_up() -> None:
    with pytest.raises(InvalidOption, match="with facts by name"):
        tried(LockGate(), Lock())
    with pytest.raises(InvalidOption, match="with plain arguments"):
        tried(lambda: True, lock=Lock())
    with pytest.raises(InvalidOption, match="LockGate is a class"):
        tried(LockGate, lock=Lock())
