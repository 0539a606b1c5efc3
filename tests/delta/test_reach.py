"""Where the values of columns come from, one by one and together."""

from __future__ import annotations

import pytest

from trickle.delta.reach import given_together
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Project,
    Scan,
    Step,
    UnionAll,
    col,
    equal,
)
from trickle.operators.expressions import Output

CHANGE = Scan("orders", (("id", "d_id"), ("customer", "d_customer")), Face.CHANGE)
STEP = Step("keys", (("k", "key"), ("l", "other")))
TABLE = Scan("lines", (("id", "l_id"), ("n", "l_n")))


def _swapped(tree: Operator, first: str, second: str) -> Project:
    return Project(tree, (Output("x", col(first)), Output("y", col(second))))


@pytest.mark.parametrize(
    "tree, columns, expected",
    [
        (CHANGE, ["d_id", "d_customer"], ((CHANGE, ["id", "customer"]),)),
        (CHANGE, ["d_customer", "d_id"], ((CHANGE, ["customer", "id"]),)),
        (CHANGE, ["d_id"], ((CHANGE, ["id"]),)),
        (CHANGE, ["d_id", "d_id"], ((CHANGE, ["id", "id"]),)),
        (
            Filter(Aggregate(CHANGE, ("d_customer", "d_id"), ()), equal("d_id", "d_customer")),
            ["d_id", "d_customer"],
            ((CHANGE, ["id", "customer"]),),
        ),
        (
            Join(JoinKind.INNER, TABLE, CHANGE, equal("d_id", "l_id")),
            ["d_id", "d_customer"],
            ((CHANGE, ["id", "customer"]),),
        ),
        (_swapped(STEP, "other", "key"), ["x", "y"], ((STEP, ["l", "k"]),)),
    ],
)
def test_columns_of_the_same_leaf_are_given_together(
    tree: Operator, columns: list[str], expected: tuple[tuple[Scan | Step, list[str]], ...]
) -> None:
    assert given_together(tree, columns) == expected


def test_in_a_union_each_part_has_its_own_columns() -> None:
    both = UnionAll((_swapped(STEP, "key", "other"), _swapped(CHANGE, "d_id", "d_customer")))
    assert given_together(both, ["x", "y"]) == ((STEP, ["k", "l"]), (CHANGE, ["id", "customer"]))
    turned = UnionAll((_swapped(STEP, "key", "other"), _swapped(STEP, "other", "key")))
    assert given_together(turned, ["x", "y"]) == ((STEP, ["k", "l"]), (STEP, ["l", "k"]))


@pytest.mark.parametrize(
    "tree, columns",
    [
        (Join(JoinKind.INNER, CHANGE, STEP, equal("d_id", "key")), ["d_id", "other"]),
        (Join(JoinKind.INNER, CHANGE, TABLE, equal("d_id", "l_id")), ["d_id", "l_n"]),
        (TABLE, ["l_id", "l_n"]),
        (Project(STEP, (Output("x", col("key")), Output("y", equal("key", "other")))), ["x", "y"]),
        (UnionAll((_swapped(STEP, "key", "other"), _swapped(TABLE, "l_id", "l_n"))), ["x", "y"]),
    ],
)
def test_columns_of_different_leaves_are_not(tree: Operator, columns: list[str]) -> None:
    assert given_together(tree, columns) is None
