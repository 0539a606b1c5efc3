from __future__ import annotations

from tests.sql.build.given import shown


def test_a_scan_reads_what_is_used() -> None:
    tree = shown("SELECT b FROM t")
    assert (
        tree
        == """\
project b
  scan t new: b"""
    )


def test_a_scan_has_a_column() -> None:
    tree = shown("SELECT count(*) AS n FROM t")
    assert (
        tree
        == """\
project count as n
  aggregate: COUNT(*) as count
    scan t new: a"""
    )


def test_unused_values_are_not_computed() -> None:
    tree = shown(
        "SELECT x.a FROM (SELECT a, b + 1 AS k, rank() OVER (ORDER BY b) AS r, (SELECT max(d) FROM u) AS m FROM t) x"
    )
    assert (
        tree
        == """\
project a
  scan t new: a"""
    )


def test_unused_calls_are_not_computed() -> None:
    tree = shown("SELECT x.c FROM (SELECT c, sum(a) AS s FROM t GROUP BY c) x")
    assert (
        tree
        == """\
project c
  aggregate by c
    scan t new: c"""
    )


def test_a_union_loses_columns_on_all_sides() -> None:
    tree = shown("SELECT x.a FROM (SELECT a, b FROM t UNION ALL SELECT a, d FROM u) x")
    assert (
        tree
        == """\
project a_2 as a
  union all
    project a as a_2
      scan t new: a
    project a_1 as a_2
      scan u new: a as a_1"""
    )


def test_distinct_needs_all_its_columns() -> None:
    tree = shown("SELECT x.a FROM (SELECT DISTINCT a, b FROM t) x")
    assert (
        tree
        == """\
project a
  aggregate by a, b
    scan t new: a, b"""
    )


def test_what_a_subquery_uses_is_read() -> None:
    tree = shown("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.d > t.b)")
    assert (
        tree
        == """\
project a
  apply semi
    scan t new: a, b
    project 1 as literal
      filter d > b
        scan u new: d"""
    )
