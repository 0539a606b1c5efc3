from __future__ import annotations

from tests.sql.lower.given import duck, e, out, rows, spark
from trickle.operators import Aggregate, Join, JoinKind, Project, UnionAll, Values


def test_several_rows():
    tree = Values(("a", "b"), ((e("1"), e("'x'")), (e("NULL"), e("'y'"))))
    assert spark(tree) == "SELECT `a`, `b` FROM VALUES (1, 'x'), (NULL, 'y') AS `rows_1`(`a`, `b`)"
    assert rows(duck().run(tree)) == [(1, "x"), (None, "y")]


def test_one_row_needs_no_table():
    tree = Project(Values((), ((),)), out(a="1 + 1", b="'x'"))
    assert spark(tree) == "SELECT 1 + 1 AS `a`, 'x' AS `b`"
    assert rows(duck().run(tree)) == [(2, "x")]


def test_no_row():
    none = Values(("a", "b"), ())
    assert spark(none) == "SELECT NULL AS `a`, NULL AS `b` WHERE FALSE"
    typed = Values(("a", "b"), ((e("DATE '2020-01-01'"), e("'x'")),))
    assert duck().run(UnionAll((none, typed))).num_rows == 1
    assert rows(duck().run(Aggregate(none, (), out(n="count(*)")))) == [(0,)]


def test_rows_without_columns():
    many = Values((), ((), (), ()))
    assert rows(duck().run(Aggregate(many, (), out(n="count(*)")))) == [(3,)]
    one = Values((), ((),))
    values = Values(("a",), ((e("1"),), (e("2"),)))
    assert rows(duck().run(Join(JoinKind.INNER, values, one))) == [(1,), (2,)]
    assert rows(duck().run(Aggregate(one, (), out(n="count(*)")))) == [(1,)]


def test_a_constant_is_a_group():
    tree = Aggregate(Values(("a",), ((e("2"),),)), ("a",), out(n="count(*)"))
    assert rows(duck().run(tree)) == [(2, 1)]
