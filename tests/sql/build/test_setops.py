from __future__ import annotations

from tests.sql.build.given import shown


def test_union_all_goes_by_place() -> None:
    tree = shown("SELECT a, b FROM t UNION ALL SELECT d, a FROM u UNION ALL SELECT 1, 2")
    assert (
        tree
        == """\
project a_2 as a, b_1 as b
  union all
    project a as a_2, b as b_1
      scan t new: a, b
    project d as a_2, a_1 as b_1
      scan u new: a as a_1, d
    project 1 as a_2, 2 as b_1
      values one: (1)"""
    )


def test_union_keeps_each_row_once() -> None:
    tree = shown("SELECT a FROM t UNION SELECT d FROM u")
    assert (
        tree
        == """\
project a_2 as a
  aggregate by a_2
    union all
      project a as a_2
        scan t new: a
      project d as a_2
        scan u new: d"""
    )


def test_unions_of_both_kinds_nest() -> None:
    tree = shown("SELECT a FROM t UNION SELECT d FROM u UNION ALL SELECT 1")
    assert (
        tree
        == """\
project a_3 as a
  union all
    project a_2 as a_3
      aggregate by a_2
        union all
          project a as a_2
            scan t new: a
          project d as a_2
            scan u new: d
    project 1 as a_3
      values one: (1)"""
    )


def test_intersect_asks_for_both_sides() -> None:
    tree = shown("SELECT a FROM t INTERSECT SELECT a FROM u")
    assert (
        tree
        == """\
project a_2 as a
  filter lefts > 0 AND rights > 0
    aggregate by a_2: SUM(on_left) as lefts, SUM(on_right) as rights
      union all
        project a as a_2, 1 as on_left, 0 as on_right
          scan t new: a
        project a_1 as a_2, 0 as on_left, 1 as on_right
          scan u new: a as a_1"""
    )


def test_except_all_counts_copies() -> None:
    tree = shown("SELECT a FROM t EXCEPT ALL SELECT a FROM u")
    assert (
        tree
        == """\
project a_2 as a
  generate EXPLODE(SEQUENCE(1, CAST(lefts - rights AS INT))) as copy
    filter lefts - rights > 0
      aggregate by a_2: SUM(on_left) as lefts, SUM(on_right) as rights
        union all
          project a as a_2, 1 as on_left, 0 as on_right
            scan t new: a
          project a_1 as a_2, 0 as on_left, 1 as on_right
            scan u new: a as a_1"""
    )


def test_intersect_all_counts_copies() -> None:
    tree = shown("SELECT a FROM t INTERSECT ALL SELECT a FROM u")
    assert (
        tree
        == """\
project a_2 as a
  generate EXPLODE(SEQUENCE(1, CAST(LEAST(lefts, rights) AS INT))) as copy
    filter LEAST(lefts, rights) > 0
      aggregate by a_2: SUM(on_left) as lefts, SUM(on_right) as rights
        union all
          project a as a_2, 1 as on_left, 0 as on_right
            scan t new: a
          project a_1 as a_2, 0 as on_left, 1 as on_right
            scan u new: a as a_1"""
    )


def test_minus_is_except() -> None:
    tree = shown("SELECT a FROM t MINUS SELECT a FROM u")
    assert (
        tree
        == """\
project a_2 as a
  filter lefts > 0 AND rights = 0
    aggregate by a_2: SUM(on_left) as lefts, SUM(on_right) as rights
      union all
        project a as a_2, 1 as on_left, 0 as on_right
          scan t new: a
        project a_1 as a_2, 0 as on_left, 1 as on_right
          scan u new: a as a_1"""
    )


def test_union_by_name_goes_by_name() -> None:
    tree = shown("SELECT a, b FROM t UNION ALL BY NAME SELECT d AS b, a FROM u")
    assert (
        tree
        == """\
project a_2 as a, b_1 as b
  union all
    project a as a_2, b as b_1
      scan t new: a, b
    project a_1 as a_2, d as b_1
      scan u new: a as a_1, d"""
    )
