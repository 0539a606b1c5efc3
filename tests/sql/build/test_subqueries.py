from __future__ import annotations

from tests.sql.build.given import shown


def test_exists_in_where_is_a_semi_join() -> None:
    tree = shown("SELECT a FROM t WHERE b > 0 AND EXISTS (SELECT * FROM u WHERE u.a = t.a LIMIT 1)")
    assert (
        tree
        == """\
project a
  apply semi
    filter b > 0
      scan t new: a, b
    filter a_1 = a
      scan u new: a as a_1"""
    )


def test_not_exists_is_an_anti_join() -> None:
    tree = shown("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)")
    assert (
        tree
        == """\
project a
  apply anti
    scan t new: a
    project 1 as literal
      filter a_1 = a
        scan u new: a as a_1"""
    )


def test_in_compares_all_columns() -> None:
    tree = shown("SELECT b FROM t WHERE (a, c) IN (SELECT a, e FROM u)")
    assert (
        tree
        == """\
project b
  apply semi on a = a_1 AND c = e
    scan t new: a, b, c
    scan u new: a as a_1, e"""
    )


def test_not_in_fails_on_null() -> None:
    tree = shown("SELECT b FROM t WHERE a NOT IN (SELECT d FROM u)")
    assert (
        tree
        == """\
project b
  apply anti on COALESCE(a = d, TRUE)
    scan t new: a, b
    scan u new: d"""
    )


def test_all_is_true_when_nothing_contradicts() -> None:
    tree = shown("SELECT b FROM t WHERE a > ALL (SELECT d FROM u)")
    assert (
        tree
        == """\
project b
  apply anti on COALESCE(NOT (a > d), TRUE)
    scan t new: a, b
    scan u new: d"""
    )


def test_not_all_finds_one_that_contradicts() -> None:
    tree = shown("SELECT b FROM t WHERE NOT (a > ALL (SELECT d FROM u))")
    assert (
        tree
        == """\
project b
  apply semi on NOT (a > d)
    scan t new: a, b
    scan u new: d"""
    )


def test_any_finds_one() -> None:
    tree = shown("SELECT b FROM t WHERE a > ANY (SELECT d FROM u)")
    assert (
        tree
        == """\
project b
  apply semi on a > d
    scan t new: a, b
    scan u new: d"""
    )


def test_quantifiers_as_values_are_marks() -> None:
    tree = shown("SELECT a > ALL (SELECT d FROM u) AS every, a < SOME (SELECT d FROM u) AS some FROM t")
    assert (
        tree
        == """\
project NOT mark as every, mark_1 as some
  apply mark on a < d_1 as mark_1
    apply mark on NOT (a > d) as mark
      scan t new: a
      scan u new: d
    scan u new: d as d_1"""
    )


def test_in_as_a_value_is_never_null() -> None:
    tree = shown("SELECT a IN (SELECT d FROM u) AS yes, a NOT IN (SELECT d FROM u) AS no FROM t")
    assert (
        tree
        == """\
project COALESCE(mark, FALSE) as yes, COALESCE(NOT mark, FALSE) as no
  apply mark on a = d as mark
    scan t new: a
    scan u new: d"""
    )


def test_subqueries_under_or_are_marks() -> None:
    tree = shown("SELECT b FROM t WHERE a = 1 OR EXISTS (SELECT 1 FROM u WHERE u.a = t.a)")
    assert (
        tree
        == """\
project b
  filter a = 1 OR mark
    apply mark as mark
      scan t new: a, b
      project 1 as literal
        filter a_1 = a
          scan u new: a as a_1"""
    )


def test_scalar_subqueries_are_values() -> None:
    tree = shown("SELECT b, (SELECT max(d) FROM u WHERE u.a = t.a) + 1 AS m FROM t WHERE b = (SELECT min(b) FROM t x)")
    assert (
        tree
        == """\
project b, scalar_1 + 1 as m
  apply scalar as scalar_1
    filter b = scalar
      apply scalar as scalar
        scan t new: a, b
        aggregate: MIN(b_1) as min
          scan t new: b as b_1
    aggregate: MAX(d) as max
      filter a_2 = a
        scan u new: a as a_2, d"""
    )


def test_subqueries_can_be_nested() -> None:
    tree = shown("SELECT b FROM t WHERE a IN (SELECT a FROM u WHERE d > (SELECT avg(b) FROM t x WHERE x.c = u.e))")
    assert (
        tree
        == """\
project b
  apply semi on a = a_1
    scan t new: a, b
    project a_1
      filter d > scalar
        apply scalar as scalar
          scan u new: a as a_1, d, e
          aggregate: AVG(b_1) as avg
            filter c_1 = e
              scan t new: b as b_1, c as c_1"""
    )


def test_having_can_hold_subqueries() -> None:
    tree = shown("SELECT c FROM t GROUP BY c HAVING sum(a) IN (SELECT d FROM u) AND c NOT IN (SELECT e FROM u)")
    assert (
        tree
        == """\
project c
  apply anti on COALESCE(c = e_1, TRUE)
    apply semi on sum = d
      aggregate by c: SUM(a) as sum
        scan t new: a, c
      scan u new: d
    scan u new: e as e_1"""
    )


def test_a_subquery_of_both_sides_of_aggregation_is_built_for_each() -> None:
    tree = shown(
        "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS known, sum(CASE WHEN EXISTS (SELECT 1 FROM u "
        "WHERE u.a = t.a) THEN 1 END) AS s FROM t GROUP BY a"
    )
    assert (
        tree
        == """\
project a, mark_1 as known, sum as s
  apply mark as mark_1
    aggregate by a: SUM(CASE WHEN mark THEN 1 END) as sum
      apply mark as mark
        scan t new: a
        project 1 as literal
          filter a_1 = a
            scan u new: a as a_1
    project 1 as literal_1
      filter a_2 = a
        scan u new: a as a_2"""
    )
