from __future__ import annotations

from tests.sql.build.given import shown


def test_a_lateral_subquery_sees_what_is_before_it() -> None:
    tree = shown("SELECT t.b, x.top FROM t, LATERAL (SELECT max(d) AS top FROM u WHERE u.a = t.a) x")
    assert (
        tree
        == """\
project b, max as top
  apply inner
    scan t new: a, b
    aggregate: MAX(d) as max
      filter a_1 = a
        scan u new: a as a_1, d"""
    )


def test_a_lateral_left_join_keeps_its_condition() -> None:
    tree = shown("SELECT t.b, x.d FROM t LEFT JOIN LATERAL (SELECT d FROM u WHERE u.a = t.a) x ON x.d > t.b")
    assert (
        tree
        == """\
project b, d
  apply left on d > b
    scan t new: a, b
    project d
      filter a_1 = a
        scan u new: a as a_1, d"""
    )


def test_a_neighbour_is_not_seen_without_lateral() -> None:
    tree = shown("SELECT x.n FROM u, (SELECT count(*) AS n FROM t WHERE a = 1) x")
    assert (
        tree
        == """\
project count as n
  inner join
    scan u new: a
    aggregate: COUNT(*) as count
      filter a_1 = 1
        scan t new: a as a_1"""
    )


def test_values_are_rows() -> None:
    tree = shown("SELECT y FROM VALUES (1, 'a'), (2, 'b') AS v(x, y) WHERE x > 1")
    assert (
        tree
        == """\
project y
  filter x > 1
    values x, y: (1, 'a'), (2, 'b')"""
    )


def test_values_alone_are_a_query() -> None:
    tree = shown("VALUES (1, 'a'), (2, 'b')")
    assert (
        tree
        == """\
project col1, col2
  values col1, col2: (1, 'a'), (2, 'b')"""
    )


def test_a_query_without_from_has_one_row() -> None:
    tree = shown("SELECT 1 + 1 AS two, current_date AS today")
    assert (
        tree
        == """\
project 1 + 1 as two, CURRENT_DATE as today
  values one: (1)"""
    )
