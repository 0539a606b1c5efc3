"""What matched before is taken from what matches now."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.delta.optimize.restrict import restrict_right
from trickle.delta.plan import OWN
from trickle.operators import Face, Filter, Join, JoinKind, Operator, Scan, col, equal, walk
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
