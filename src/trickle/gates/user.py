"""User gates: questions of the user's own about the staged change or the sources, such as row counts and null rates.

What a gate returns is turned into an answer here, so that the tester (``trickle.testing.gates``) and a refresh agree.
"""

from __future__ import annotations

from trickle.gates.facts import Facts, TableFacts, UserAnswer
from trickle.gates.verdict import Verdict, proceed, skip, together


def answered(name: str, returned: object) -> UserAnswer:
    """What a gate's function or predicate returned, as an answer.

    True lets the refresh pass, False holds it; a pair has the reason as well. Anything else is no answer and holds it:
    a predicate over no rows is NULL, and a function that forgets to return gives None.

    >>> answered("enough_rows", (False, "only 3 rows"))
    UserAnswer(name='enough_rows', passed=False, reason='only 3 rows')
    >>> answered("enough_rows", None).reason
    'it answered None, neither true nor false'
    """
    passed, reason = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, "")
    if not isinstance(passed, bool):
        return UserAnswer(name, False, f"it answered {passed!r}, neither true nor false")
    return UserAnswer(name, passed, str(reason) or ("it said yes" if passed else "it said no"))


class UserGates:
    """Whether all gates of the user let the change pass."""

    name = "user"

    def evaluate(self, table: TableFacts, facts: Facts) -> Verdict:
        answers = [user_verdict(answer) for answer in facts.user_answers]
        return together(self.name, answers) if answers else proceed(self.name, "no gates of your own")


def user_verdict(answer: UserAnswer) -> Verdict:
    """An answer as a verdict. It is a skip: the next tick may bring the rows that were missing."""
    gate = f"user gate {answer.name}"
    return proceed(gate, answer.reason) if answer.passed else skip(gate, f"{gate}: {answer.reason}")
