from __future__ import annotations

from tests.sql.build.given import shown


def test_each_use_is_built_anew() -> None:
    tree = shown("WITH x AS (SELECT a, b FROM t) SELECT p.a, q.b FROM x p JOIN x q ON p.a = q.a")
    assert (
        tree
        == """\
project a, b_1 as b
  inner join on a = a_1
    scan t new: a
    scan t new: a as a_1, b as b_1"""
    )


def test_a_column_list_renames() -> None:
    tree = shown("WITH x(p, q) AS (SELECT a, b FROM t) SELECT p + q AS s FROM x")
    assert (
        tree
        == """\
project a + b as s
  scan t new: a, b"""
    )


def test_a_definition_does_not_see_itself() -> None:
    tree = shown("WITH t AS (SELECT a FROM t WHERE a > 1) SELECT a FROM t")
    assert (
        tree
        == """\
project a
  filter a > 1
    scan t new: a"""
    )


def test_inner_definitions_shadow_outer_ones() -> None:
    tree = shown(
        "WITH x AS (SELECT a FROM t) SELECT * FROM (WITH x AS (SELECT d FROM u) SELECT * FROM x) JOIN x ON TRUE"
    )
    assert (
        tree
        == """\
project d, a_1 as a
  inner join on TRUE
    scan u new: d
    scan t new: a as a_1"""
    )


def test_recursion_refers_to_the_step_before() -> None:
    tree = shown("WITH RECURSIVE r(n) AS (SELECT a FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r")
    assert (
        tree
        == """\
project n
  recursion r(n)
    scan t new: a
    project n_1 + 1 as add
      filter n_1 < 5
        previous r(n_1)"""
    )


def test_recursive_unions_can_be_distinct() -> None:
    tree = shown(
        "WITH RECURSIVE r AS (SELECT a, d FROM u UNION SELECT r.a, u.d FROM r JOIN u ON r.d = u.a) SELECT a, d FROM r"
    )
    assert (
        tree
        == """\
project a_1 as a, d_1 as d
  recursion r(a_1, d_1) distinct
    scan u new: a, d
    project a_2, d_3
      inner join on d_2 = a_3
        previous r(a_2, d_2)
        scan u new: a as a_3, d as d_3"""
    )
