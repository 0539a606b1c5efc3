from __future__ import annotations

import pytest
from sqlglot import exp

from trickle.operators import Apply, ApplyKind, Filter, InvalidTree, Scan, col
from trickle.sql.build.check import checked


def positive(name: str) -> exp.Expr:
    return exp.GT(this=col(name), expression=exp.Literal.number(0))


def test_a_column_must_come_from_the_input() -> None:
    tree = Filter(Scan("t", (("a", "a"),)), positive("b"))
    with pytest.raises(InvalidTree, match="uses the column 'b'"):
        checked(tree)


def test_a_subquery_may_use_the_left_of_its_apply_only() -> None:
    inner = Filter(Scan("u", (("b", "b"),)), positive("a"))
    tree = Apply(ApplyKind.SEMI, Scan("t", (("a", "a"),)), inner)
    assert checked(tree) is tree
    with pytest.raises(InvalidTree):
        checked(inner)
