from __future__ import annotations

from tests.sql.build.given import shown


def test_distinct_rows_are_groups() -> None:
    tree = shown("SELECT DISTINCT a, c FROM t")
    assert (
        tree
        == """\
project a, c
  aggregate by a, c
    scan t new: a, c"""
    )


def test_the_list_is_all_there_is_to_order_by() -> None:
    tree = shown("SELECT DISTINCT a + 1 AS k, c FROM t ORDER BY (a + 1) * 2, lower(c) LIMIT 1")
    assert (
        tree
        == """\
project k, c
  top 1 by order, order_1, k, c
    project k, c, (k) * 2 as order, LOWER(c) as order_1
      aggregate by k, c
        project a + 1 as k, c
          scan t new: a, c"""
    )


def test_distinct_on_keeps_the_first_of_each() -> None:
    tree = shown("SELECT DISTINCT ON (c) c, b FROM t ORDER BY c, a DESC")
    assert (
        tree
        == """\
project c, b
  filter row_number = 1
    window by c: ROW_NUMBER() OVER (PARTITION BY c ORDER BY c ASC, a DESC, c ASC, b ASC) as row_number
      project c, b, a
        scan t new: a, b, c"""
    )
