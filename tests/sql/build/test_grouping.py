from __future__ import annotations

from tests.sql.build.given import shown


def test_keys_that_are_columns_need_no_projection() -> None:
    tree = shown("SELECT c, sum(a) AS s FROM t GROUP BY c")
    assert (
        tree
        == """\
project c, sum as s
  aggregate by c: SUM(a) as sum
    scan t new: a, c"""
    )


def test_computed_keys_are_found_in_the_list_again() -> None:
    tree = shown("SELECT a + 1, (a + 1) * 2 AS twice, UPPER(c) AS up, count(*) AS n FROM t GROUP BY a + 1, upper(C)")
    assert (
        tree
        == """\
project key as a + 1, key * 2 as twice, key_1 as up, count as n
  aggregate by key, key_1: COUNT(*) as count
    project a + 1 as key, UPPER(c) as key_1
      scan t new: a, c"""
    )


def test_keys_can_be_aliases_and_places() -> None:
    tree = shown("SELECT a + 1 AS k, c, count(*) AS n FROM t GROUP BY k, 2")
    assert (
        tree
        == """\
project key as k, c, count as n
  aggregate by key, c: COUNT(*) as count
    project c, a + 1 as key
      scan t new: a, c"""
    )


def test_group_by_all_takes_what_is_not_aggregated() -> None:
    tree = shown("SELECT c, a % 2 AS odd, max(b) AS top FROM t GROUP BY ALL")
    assert (
        tree
        == """\
project c, key as odd, max as top
  aggregate by c, key: MAX(b) as max
    project b, c, a % 2 as key
      scan t new: a, b, c"""
    )


def test_equal_calls_are_computed_once() -> None:
    tree = shown("SELECT sum(a) + 1 AS p, SUM(a) / count(*) AS q FROM t HAVING count(*) > 0")
    assert (
        tree
        == """\
project sum + 1 as p, sum / count as q
  filter count > 0
    aggregate: SUM(a) as sum, COUNT(*) as count
      scan t new: a"""
    )


def test_having_can_use_aliases() -> None:
    tree = shown("SELECT c, sum(a) AS s FROM t GROUP BY c HAVING s > 3 AND max(b) > 1")
    assert (
        tree
        == """\
project c, sum as s
  filter sum > 3 AND max > 1
    aggregate by c: SUM(a) as sum, MAX(b) as max
      scan t new: a, b, c"""
    )


def test_having_alone_makes_one_group() -> None:
    tree = shown("SELECT 1 AS one FROM t HAVING TRUE")
    assert (
        tree
        == """\
project 1 as one
  filter TRUE
    aggregate: COUNT(*) as count
      scan t new: a"""
    )


def test_distinct_filter_and_order_stay_inside_the_call() -> None:
    tree = shown(
        "SELECT count(DISTINCT a, c) AS n, sum(b) FILTER (WHERE a > 1) AS s, first(a) IGNORE NULLS AS f FROM t"
    )
    assert (
        tree
        == """\
project count as n, sum as s, first as f
  aggregate: COUNT(DISTINCT a, c) as count, SUM(b) FILTER(WHERE a > 1) as sum, FIRST(a) IGNORE NULLS as first
    scan t new: a, b, c"""
    )


def test_within_group_stays_inside_the_call() -> None:
    tree = shown("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY b) AS p FROM t")
    assert (
        tree
        == """\
project percentile_cont as p
  aggregate: PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY b) as percentile_cont
    scan t new: b"""
    )


def test_listagg_puts_nothing_between_by_default() -> None:
    tree = shown("SELECT listagg(c) WITHIN GROUP (ORDER BY c) AS l, any(a > 1) AS y FROM t")
    assert (
        tree
        == """\
project groupconcat as l, any as y
  aggregate: LISTAGG(c, '') WITHIN GROUP (ORDER BY c) as groupconcat, ANY(a > 1) as any
    scan t new: a, c"""
    )


def test_subqueries_inside_aggregates_are_applied_below() -> None:
    tree = shown("SELECT c, sum((SELECT max(d) FROM u WHERE u.a = t.a)) AS s FROM t GROUP BY c")
    assert (
        tree
        == """\
project c, sum as s
  aggregate by c: SUM(scalar) as sum
    apply scalar as scalar
      scan t new: a, c
      aggregate: MAX(d) as max
        filter a_1 = a
          scan u new: a as a_1, d"""
    )


def test_subqueries_that_are_keys_are_computed_once() -> None:
    tree = shown("SELECT a IN (SELECT a FROM u) AS known, count(*) AS n FROM t GROUP BY a IN (SELECT a FROM u)")
    assert (
        tree
        == """\
project key as known, count as n
  aggregate by key: COUNT(*) as count
    project COALESCE(mark, FALSE) as key
      apply mark on a = a_1 as mark
        scan t new: a
        scan u new: a as a_1"""
    )


def test_subqueries_over_groups_are_applied_above() -> None:
    tree = shown("SELECT a, (SELECT max(d) FROM u WHERE u.a = t.a) AS m FROM t GROUP BY a")
    assert (
        tree
        == """\
project a, scalar as m
  apply scalar as scalar
    aggregate by a
      scan t new: a
    aggregate: MAX(d) as max
      filter a_1 = a
        scan u new: a as a_1, d"""
    )
