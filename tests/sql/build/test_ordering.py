from __future__ import annotations

from tests.sql.build.given import shown


def test_the_order_is_total() -> None:
    tree = shown("SELECT a, b FROM t ORDER BY b DESC LIMIT 3")
    assert (
        tree
        == """\
project a, b
  top 3 by b desc, a
    scan t new: a, b"""
    )


def test_an_order_without_limit_is_dropped() -> None:
    tree = shown("SELECT a FROM t ORDER BY b")
    assert (
        tree
        == """\
project a
  scan t new: a"""
    )


def test_what_is_ordered_by_need_not_be_shown() -> None:
    tree = shown("SELECT a FROM t ORDER BY b * 2 DESC NULLS FIRST, c LIMIT 3 OFFSET 1")
    assert (
        tree
        == """\
project a
  top 3 after 1 by order desc nulls first, c, a
    project a, b * 2 as order, c
      scan t new: a, b, c"""
    )


def test_places_and_all_are_columns_of_the_list() -> None:
    tree = shown("SELECT b, a + 1 AS k FROM t ORDER BY 2 DESC, ALL LIMIT 1")
    assert (
        tree
        == """\
project b, k
  top 1 by k desc, b
    project b, a + 1 as k
      scan t new: a, b"""
    )


def test_aliases_come_before_columns() -> None:
    tree = shown("SELECT a AS b, b AS z FROM t ORDER BY b LIMIT 1")
    assert (
        tree
        == """\
project a as b, b as z
  top 1 by a, b
    scan t new: a, b"""
    )


def test_groups_can_be_ordered_by_calls() -> None:
    tree = shown("SELECT c FROM t GROUP BY c ORDER BY sum(a) DESC, count(*) LIMIT 2")
    assert (
        tree
        == """\
project c
  top 2 by sum desc, count, c
    aggregate by c: SUM(a) as sum, COUNT(*) as count
      scan t new: a, c"""
    )


def test_a_union_is_ordered_by_its_columns() -> None:
    tree = shown("SELECT a FROM t UNION ALL SELECT d FROM u ORDER BY a % 2, 1 DESC LIMIT 2")
    assert (
        tree
        == """\
project a_2 as a
  top 2 by order, a_2 desc
    project a_2, a_2 % 2 as order
      union all
        project a as a_2
          scan t new: a
        project d as a_2
          scan u new: d"""
    )


def test_parentheses_can_be_ordered() -> None:
    tree = shown("(SELECT a FROM t) ORDER BY a LIMIT 1")
    assert (
        tree
        == """\
project a
  top 1 by a
    scan t new: a"""
    )


def test_fetch_and_offset_limit_too() -> None:
    tree = shown("SELECT a FROM t ORDER BY a OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY")
    assert (
        tree
        == """\
project a
  top 3 after 2 by a
    scan t new: a"""
    )


def test_a_limit_of_nothing_is_empty() -> None:
    tree = shown("SELECT a FROM t LIMIT 0")
    assert (
        tree
        == """\
project a
  filter FALSE
    scan t new: a"""
    )


def test_one_row_needs_no_order() -> None:
    tree = shown("SELECT count(*) AS n FROM t LIMIT 1 + 1")
    assert (
        tree
        == """\
project count as n
  aggregate: COUNT(*) as count
    scan t new: a"""
    )


def test_sorting_for_files_is_dropped() -> None:
    tree = shown("SELECT a FROM t DISTRIBUTE BY a SORT BY b")
    assert (
        tree
        == """\
project a
  scan t new: a"""
    )


def test_a_subquery_can_take_the_first() -> None:
    tree = shown("SELECT a, (SELECT d FROM u WHERE u.a = t.a ORDER BY e LIMIT 1) AS first FROM t")
    assert (
        tree
        == """\
project a, scalar as first
  apply scalar as scalar
    scan t new: a
    project d
      top 1 by e, d
        project d, e
          filter a_1 = a
            scan u new: a as a_1, d, e"""
    )
