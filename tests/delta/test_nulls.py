"""What asks for NULL where there is none is left out."""

from __future__ import annotations

from functools import partial

import pytest
from sqlglot import parse_one

from trickle.delta.optimize.nulls import Removal
from trickle.delta.optimize.prune import is_nothing
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    UnionAll,
    col,
)

A = Scan("a", (("k", "x"), ("v", "w")), Face.NEW)
B = Scan("b", (("k", "y"),), Face.NEW)
S = Step("s", (("k", "z"),))


def less(tree: Operator, *full: str) -> Operator:
    """The tree, where columns have no NULL: ``a.k`` is column k of the leaf a."""

    def has_no_null(leaf: Scan | Step, column: str) -> bool:
        return f"{leaf.name if isinstance(leaf, Step) else leaf.table}.{column}" in full

    return Removal(has_no_null).tree(tree)


def joined(kind: JoinKind, condition: str, right: Operator = B) -> Join:
    return Join(kind, A, right, parse_one(condition))


def test_a_filter_asks_in_vain() -> None:
    asked = Filter(A, parse_one("w > 1 AND x IS NULL"))
    assert is_nothing(less(asked, "a.k"))
    assert less(asked, "a.v", "b.k") is asked


def test_other_questions_are_left_alone() -> None:
    for condition in ("x IS NULL OR w > 1", "NOT x IS NULL", "x + w IS NULL", "coalesce(x, w) IS NULL"):
        asked = Filter(A, parse_one(condition))
        assert less(asked, "a.k", "a.v") is asked


def test_joins_ask_in_vain_on_either_side() -> None:
    for condition, full in (("x = y AND x IS NULL", "a.k"), ("y IS NULL", "b.k")):
        for kind in (JoinKind.INNER, JoinKind.SEMI):
            assert is_nothing(less(joined(kind, condition), full))
        assert less(joined(JoinKind.ANTI, condition), full) == A
        left = less(joined(JoinKind.LEFT, condition), full)
        assert isinstance(left, Project)
        assert [output.value.sql() for output in left.outputs] == ['"x"', '"w"', "NULL"]


def test_a_left_join_fills_up_with_null() -> None:
    missing = Filter(joined(JoinKind.LEFT, "x = y"), parse_one("y IS NULL"))
    assert less(missing, "a.k", "a.v", "b.k") is missing
    assert is_nothing(less(Filter(joined(JoinKind.LEFT, "x = y"), parse_one("x IS NULL")), "a.k"))


def test_what_is_handed_on_is_known_further_up() -> None:
    renamed = Project(Filter(A, parse_one("w > 1")), (Output("n", col("x")), Output("sum", parse_one("x + w"))))
    assert is_nothing(less(Filter(renamed, parse_one("n IS NULL")), "a.k"))
    asked = Filter(renamed, parse_one("sum IS NULL"))
    assert less(asked, "a.k", "a.v") is asked
    grouped = Aggregate(A, ("x",), (Output("most", parse_one("max(w)")),))
    assert is_nothing(less(Filter(grouped, parse_one("x IS NULL")), "a.k"))
    most = Filter(grouped, parse_one("most IS NULL"))
    assert less(most, "a.k", "a.v") is most


def test_a_union_has_none_where_no_part_has() -> None:
    parts = UnionAll((Project(B, (Output("z", col("y")),)), S))
    asked = Filter(parts, parse_one("z IS NULL"))
    assert less(asked, "b.k") is asked
    assert less(asked, "s.k") is asked
    assert is_nothing(less(asked, "b.k", "s.k"))


@pytest.mark.parametrize("full", [("s.k",), ("s.k", "b.k")])
def test_not_in_becomes_one_anti_join(full: tuple[str, ...]) -> None:
    """``x NOT IN (SELECT y FROM b)`` as the rewrites spell it: equal, unknown inside, unknown outside."""
    kept = Join(JoinKind.ANTI, S, B, parse_one("z = y"))
    unknown = Filter(Scan("b", (("k", "y2"),), Face.NEW), parse_one("y2 IS NULL"))
    some = Scan("c", (("one", "o"),), Face.NEW)
    tree = Join(JoinKind.ANTI, Join(JoinKind.ANTI, kept, unknown), some, parse_one("z IS NULL"))
    removal = Removal(lambda leaf, _: (leaf.name if isinstance(leaf, Step) else leaf.table) + ".k" in full)
    found = removal.tree(tree)
    assert found == (kept if "b.k" in full else Join(JoinKind.ANTI, kept, unknown))
    assert removal.answers == ["b.k" in full, True]


def test_the_answers_tell_two_results_apart() -> None:
    """The same column of two states: which of them has no NULL decides what is left."""
    old, new = (Filter(Scan("b", (("k", "y"),), face), parse_one("y IS NULL")) for face in (Face.OLD, Face.NEW))
    for full, left, answers in ((Face.OLD, new, [True, False]), (Face.NEW, old, [False, True])):
        removal = Removal(partial(_is_at, full))
        assert removal.tree(UnionAll((old, new))) == left
        assert removal.answers == answers


def _is_at(face: Face, leaf: Scan | Step, _: str) -> bool:
    return isinstance(leaf, Scan) and leaf.face is face
