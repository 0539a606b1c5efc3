"""What matched before is taken from what matches now."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp, parse_one

from trickle.algebra.weights import WEIGHT
from trickle.delta.optimize.restrict import restrict_right
from trickle.delta.optimize.share import share
from trickle.delta.plan import OWN, Plan
from trickle.operators import Aggregate, Face, Filter, Join, JoinKind, Operator, Scan, UnionAll, col, equal, walk
from trickle.operators.clock import NOW_OLD


def _scan(table: str, column: str, face: Face) -> Scan:
    return Scan(table, (("k", column),), face)


def _asked(kind: JoinKind, right: Operator) -> Join:
    return Join(kind, _scan("a", "x", Face.CHANGE), right, equal("x", "y"), small="left")


def _faces(tree: Operator, table: str) -> set[Face]:
    return {node.face for node in walk(tree) if isinstance(node, Scan) and node.table == table}


def _over(limit: exp.Expr) -> Filter:
    return Filter(_scan("b", "y", Face.OLD), exp.GT(this=col("y"), expression=limit))


def test_the_old_state_is_not_read() -> None:
    for kind in (JoinKind.SEMI, JoinKind.ANTI):
        found = restrict_right(_asked(kind, _over(exp.Literal.number(3))))
        assert _faces(found, "b") == {Face.NEW, Face.CHANGE}
        assert found.columns == _asked(kind, _over(exp.Literal.number(3))).columns


def test_both_states_are_asked_by_the_number_of_matches_which_is_made_once() -> None:
    wide = [Scan("b", (("k", "y"), ("v", "z")), face) for face in (Face.NEW, Face.OLD)]
    plan = share(Plan((), restrict_right(UnionAll(tuple(_asked(JoinKind.ANTI, one) for one in wide)))))
    [step] = plan.steps
    assert isinstance(step.tree, Aggregate)
    assert step.tree.columns == ("y", WEIGHT), "what the condition does not use is not kept"
    assert _faces(step.tree, "b") == {Face.NEW}
    assert _faces(plan.result, "b") == {Face.CHANGE}


def test_what_is_asked_of_the_new_state_alone_is_not_counted() -> None:
    joins = (_asked(JoinKind.SEMI, _scan("b", "y", Face.NEW)), _asked(JoinKind.SEMI, _scan("c", "y", Face.OLD)))
    found = restrict_right(UnionAll(joins))
    counted = [node for node in walk(found) if isinstance(node, Aggregate)]
    assert {scan.table for node in counted for scan in walk(node) if isinstance(scan, Scan)} == {"a", "c"}


def test_a_condition_that_uses_nothing_of_the_table_asks_its_old_state() -> None:
    join = _asked(JoinKind.SEMI, _scan("b", "y", Face.OLD))
    only_left = replace(join, condition=exp.GT(this=col("x"), expression=exp.Literal.number(1)))
    assert _faces(restrict_right(only_left), "b") == {Face.OLD}


def test_what_computes_with_a_column_asks_its_old_state() -> None:
    """Groups know one zero, and texts two: what is kept by groups would not answer."""
    join = _asked(JoinKind.SEMI, _scan("b", "y", Face.OLD))
    for condition in ("x = CAST(y AS STRING)", "x = y AND y % 2 = 0", "x = y AND coalesce(y, 1) > 0"):
        asked = replace(join, condition=parse_one(condition, dialect="spark"))
        assert _faces(restrict_right(asked), "b") == {Face.OLD}, condition
    for condition in ("x <> y", "x <=> y", "x > y AND y IS NOT NULL", "x BETWEEN y AND y", "x = y OR y IN (1, 2)"):
        asked = replace(join, condition=parse_one(condition, dialect="spark"))
        assert _faces(restrict_right(asked), "b") == {Face.NEW, Face.CHANGE}, condition


def test_a_left_join_wants_the_copies_too() -> None:
    assert _faces(restrict_right(_asked(JoinKind.LEFT, _scan("b", "y", Face.OLD))), "b") == {Face.OLD}


def test_what_depends_on_the_time_changes_without_its_table() -> None:
    assert _faces(restrict_right(_asked(JoinKind.ANTI, _over(col(NOW_OLD)))), "b") == {Face.OLD}


def test_the_old_state_of_a_join_is_read() -> None:
    joined = Join(JoinKind.INNER, _scan("b", "y", Face.OLD), _scan("c", "z", Face.OLD), equal("y", "z"))
    assert _faces(restrict_right(_asked(JoinKind.SEMI, joined)), "b") == {Face.OLD}


def test_the_stored_table_has_no_new_state_yet() -> None:
    assert _faces(restrict_right(_asked(JoinKind.ANTI, _scan(OWN, "y", Face.OLD))), OWN) == {Face.OLD}


def test_many_rows_are_not_asked_about() -> None:
    big = replace(_asked(JoinKind.ANTI, _scan("b", "y", Face.OLD)), left=_scan("a", "x", Face.NEW))
    assert restrict_right(big) == big
