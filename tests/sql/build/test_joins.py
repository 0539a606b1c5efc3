from __future__ import annotations

from tests.sql.build.given import shown


def test_inner_joins_keep_their_condition() -> None:
    tree = shown("SELECT t.b, u.d FROM t JOIN u ON t.a = u.a AND t.b < u.d")
    assert (
        tree
        == """\
project b, d
  inner join on a = a_1 AND b < d
    scan t new: a, b
    scan u new: a as a_1, d"""
    )


def test_a_comma_is_a_join_like_any_other() -> None:
    tree = shown("SELECT t.b, v.d FROM t, u JOIN u v ON t.a = v.a")
    assert (
        tree
        == """\
project b, d_1 as d
  inner join on a = a_2
    inner join
      scan t new: a, b
      scan u new: a as a_1
    scan u new: a as a_2, d as d_1"""
    )


def test_a_right_join_is_a_left_join_seen_from_the_other_side() -> None:
    tree = shown("SELECT t.b, u.d FROM t RIGHT JOIN u ON t.a = u.a")
    assert (
        tree
        == """\
project b, d
  left join on a = a_1
    scan u new: a as a_1, d
    scan t new: a, b"""
    )


def test_a_full_join_is_a_left_join_and_what_is_left_of_the_right() -> None:
    tree = shown("SELECT t.b, u.d FROM t FULL JOIN u ON t.a = u.a")
    assert (
        tree
        == """\
project b_1 as b, d_1 as d
  union all
    project b as b_1, d as d_1
      left join on a = a_1
        scan t new: a, b
        scan u new: a as a_1, d
    project NULL as b_1, d as d_1
      anti join on a = a_1
        scan u new: a as a_1, d
        scan t new: a"""
    )


def test_using_takes_the_left_column() -> None:
    tree = shown("SELECT * EXCEPT (arr, m, st) FROM t LEFT JOIN u USING (a)")
    assert (
        tree
        == """\
project a, b, c, d, e
  left join on a = a_1
    scan t new: a, b, c
    scan u new: a as a_1, d, e"""
    )


def test_using_of_a_right_join_takes_the_right_column() -> None:
    tree = shown("SELECT a, t.a AS left_a FROM t RIGHT JOIN u USING (a)")
    assert (
        tree
        == """\
project a_1 as a, a as left_a
  left join on a = a_1
    scan u new: a as a_1
    scan t new: a"""
    )


def test_using_of_a_full_join_takes_either() -> None:
    tree = shown("SELECT a, d FROM t FULL JOIN u USING (a)")
    assert (
        tree
        == """\
project COALESCE(a_2, a_1_1) as a, d_1 as d
  union all
    project a as a_2, a_1 as a_1_1, d as d_1
      left join on a = a_1
        scan t new: a
        scan u new: a as a_1, d
    project NULL as a_2, a_1 as a_1_1, d as d_1
      anti join on a = a_1
        scan u new: a as a_1, d
        scan t new: a"""
    )


def test_natural_joins_compare_all_shared_names() -> None:
    tree = shown("SELECT a, d FROM (SELECT a, c AS e FROM t) NATURAL JOIN u")
    assert (
        tree
        == """\
project a, d
  inner join on a = a_1 AND c = e
    scan t new: a, c
    scan u new: a as a_1, d, e"""
    )


def test_natural_joins_without_shared_names_are_cross_joins() -> None:
    tree = shown("SELECT b, d FROM (SELECT b FROM t) NATURAL JOIN (SELECT d FROM u)")
    assert (
        tree
        == """\
project b, d
  inner join
    scan t new: b
    scan u new: d"""
    )


def test_semi_and_anti_joins_show_the_left_only() -> None:
    tree = shown("SELECT * EXCEPT (arr, m, st) FROM t LEFT SEMI JOIN u ON t.a = u.a LEFT ANTI JOIN u v ON t.b = v.d")
    assert (
        tree
        == """\
project a, b, c
  anti join on b = d_1
    semi join on a = a_1
      scan t new: a, b, c
      scan u new: a as a_1
    scan u new: d as d_1"""
    )


def test_joins_in_parentheses_come_first() -> None:
    tree = shown("SELECT t.b, u.d FROM t LEFT JOIN ((u JOIN u v ON u.a = v.d) CROSS JOIN u w) ON t.a = v.a AND w.d = 1")
    assert (
        tree
        == """\
project b, d
  left join on a = a_2 AND d_2 = 1
    scan t new: a, b
    inner join
      inner join on a_1 = d_1
        scan u new: a as a_1, d
        scan u new: a as a_2, d as d_1
      scan u new: d as d_2"""
    )


def test_joins_in_parentheses_can_have_an_alias() -> None:
    tree = shown("SELECT x.b, x.d FROM (SELECT b, d FROM t JOIN u ON t.a = u.a) x JOIN (t y) ON y.a = x.b")
    assert (
        tree
        == """\
project b, d
  inner join on a_2 = b
    project b, d
      inner join on a = a_1
        scan t new: a, b
        scan u new: a as a_1, d
    scan t new: a as a_2"""
    )


def test_a_subquery_in_the_condition_of_an_outer_join_is_computed_on_its_side() -> None:
    tree = shown("SELECT t.b, u.d FROM t LEFT JOIN u ON t.a = u.a AND u.d IN (SELECT b FROM t)")
    assert (
        tree
        == """\
project b, d
  left join on a = a_1 AND COALESCE(mark, FALSE)
    scan t new: a, b
    apply mark on d = b_1 as mark
      scan u new: a as a_1, d
      scan t new: b as b_1"""
    )


def test_a_subquery_in_the_condition_of_an_inner_join_filters_the_joined_rows() -> None:
    tree = shown(
        "SELECT t.b FROM t JOIN u ON t.a = u.a AND NOT EXISTS (SELECT 1 FROM u v WHERE v.d = t.b AND v.e = u.e)"
    )
    assert (
        tree
        == """\
project b
  apply anti
    inner join on a = a_1
      scan t new: a, b
      scan u new: a as a_1, e
    project 1 as literal
      filter d_1 = b AND e_1 = e
        scan u new: d as d_1, e as e_1"""
    )
