"""Which steps of recursions are linear, and why others are not."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.delta.linear import Nonlinear, linear_step, refers, with_previous
from trickle.operators import Aggregate, JoinKind, Operator, Recursion, RecursiveRef, Step, UnionAll, Values, show, walk
from trickle.operators.joining import Join
from trickle.sql.build import build_tree
from trickle.sql.rewrites import rewrite

SCHEMAS = {TableName.of(["edges"]): {"src": "bigint", "dst": "bigint"}}


def recursion(step: str, union: str = "UNION") -> Recursion:
    text = f"WITH RECURSIVE p(a) AS (SELECT src FROM edges {union} {step}) SELECT a FROM p"
    (found,) = (node for node in walk(rewrite(build_tree(text, SCHEMAS))) if isinstance(node, Recursion))
    return found


@pytest.mark.parametrize(
    "step",
    [
        "SELECT e.dst FROM p JOIN edges e ON p.a = e.src WHERE e.dst > 3",
        "SELECT e.dst FROM p LEFT JOIN edges e ON p.a = e.src",
        "SELECT a + 1 FROM p WHERE NOT EXISTS (SELECT 1 FROM edges e WHERE e.src = a)",
        "(SELECT a + 1 FROM p WHERE a < 9 UNION ALL SELECT a - 1 FROM p WHERE a > 0)",
        "SELECT explode(array(a, a + 1)) FROM p WHERE a < 9",
    ],
)
def test_steps_that_look_at_one_row_are_linear_as_they_are(step):
    found = recursion(step)
    assert linear_step(found) == found.step


def test_what_only_removes_copies_is_left_out_where_the_result_is_a_set():
    found = linear_step(recursion("SELECT DISTINCT e.dst FROM p JOIN edges e ON p.a = e.src"))
    assert isinstance(found, Operator)
    assert not any(isinstance(node, Aggregate) for node in walk(found))
    found = linear_step(recursion("SELECT dst FROM edges WHERE src IN (SELECT a FROM p)"))
    assert isinstance(found, Operator)
    assert [node.kind for node in walk(found) if isinstance(node, Join)] == [JoinKind.INNER]


@pytest.mark.parametrize(
    "step, union, reason",
    [
        ("SELECT max(a) FROM p WHERE a < 9", "UNION", "an aggregate over it"),
        ("SELECT DISTINCT a + 1 FROM p WHERE a < 9", "UNION ALL", "DISTINCT over it"),
        ("SELECT row_number() OVER (PARTITION BY a ORDER BY a) FROM p", "UNION", "a window function over it"),
        ("SELECT x.a FROM p x JOIN p y ON x.a = y.a + 1", "UNION", "a join of it with itself"),
        ("SELECT dst FROM edges WHERE NOT EXISTS (SELECT 1 FROM p WHERE a = src)", "UNION", "an ANTI JOIN"),
        ("(SELECT a + 1 FROM p WHERE a < 9 UNION ALL SELECT dst FROM edges)", "UNION", "a part that does not refer"),
    ],
)
def test_steps_that_look_at_several_rows_are_not(step, union, reason):
    found = linear_step(recursion(step, union))
    assert isinstance(found, Nonlinear)
    assert found.reason.startswith(reason)


def test_a_name_means_the_innermost_recursion():
    inner = Recursion("p", ("x",), RecursiveRef("p", ("outer",)), RecursiveRef("p", ("own",)), True)
    assert refers(inner, "p")
    assert not refers(Recursion("p", ("x",), Values(("v",), ()), RecursiveRef("p", ("own",)), True), "p")
    replaced = with_previous(UnionAll((inner,)), "p", lambda names: Step("latest", tuple((n, n) for n in names)))
    assert show(replaced).splitlines() == [
        "union all",
        "  recursion p(x) distinct",
        "    step latest: outer",
        "    previous p(own)",
    ]
