from __future__ import annotations

from tests.sql.build.given import shown


def test_windows_of_one_partition_share_a_node() -> None:
    tree = shown(
        "SELECT a, rank() OVER (PARTITION BY c ORDER BY a) AS r, sum(b) OVER (PARTITION BY c) AS s, sum(b) "
        "OVER (PARTITION BY a, c) AS x, sum(a) OVER (PARTITION BY c, a) AS y FROM t"
    )
    assert (
        tree
        == """\
project a, rank as r, sum as s, sum_1 as x, sum_2 as y
  window by a, c: SUM(b) OVER (PARTITION BY a, c) as sum_1, SUM(a) OVER (PARTITION BY a, c) as sum_2
    window by c: RANK() OVER (PARTITION BY c ORDER BY a) as rank, SUM(b) OVER (PARTITION BY c) as sum
      scan t new: a, b, c"""
    )


def test_computed_partitions_are_projected() -> None:
    tree = shown("SELECT sum(b) OVER (PARTITION BY a % 2) AS s FROM t")
    assert (
        tree
        == """\
project sum as s
  window by key: SUM(b) OVER (PARTITION BY key) as sum
    project b, a % 2 as key
      scan t new: a, b"""
    )


def test_named_windows_are_written_out() -> None:
    tree = shown("SELECT sum(b) OVER w AS s, rank() OVER (w) AS r FROM t WINDOW w AS (PARTITION BY c ORDER BY a)")
    assert (
        tree
        == """\
project sum as s, rank as r
  window by c: SUM(b) OVER (PARTITION BY c ORDER BY a) as sum, RANK() OVER (PARTITION BY c ORDER BY a) as rank
    scan t new: a, b, c"""
    )


def test_windows_come_after_aggregation() -> None:
    tree = shown("SELECT c, sum(sum(a)) OVER (ORDER BY c) AS running FROM t GROUP BY c")
    assert (
        tree
        == """\
project c, sum_1 as running
  window: SUM(sum) OVER (ORDER BY c) as sum_1
    aggregate by c: SUM(a) as sum
      scan t new: a, c"""
    )


def test_windows_can_be_inside_expressions() -> None:
    tree = shown("SELECT b - avg(b) OVER (PARTITION BY c) AS off FROM t")
    assert (
        tree
        == """\
project b - avg as off
  window by c: AVG(b) OVER (PARTITION BY c) as avg
    scan t new: b, c"""
    )


def test_qualify_filters_by_windows() -> None:
    tree = shown("SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY c ORDER BY a) = 1")
    assert (
        tree
        == """\
project a
  filter row_number = 1
    window by c: ROW_NUMBER() OVER (PARTITION BY c ORDER BY a) as row_number
      scan t new: a, c"""
    )


def test_qualify_can_use_aliases() -> None:
    tree = shown("SELECT a, rank() OVER (ORDER BY b) AS r FROM t QUALIFY r < 3")
    assert (
        tree
        == """\
project a, rank as r
  filter rank < 3
    window: RANK() OVER (ORDER BY b) as rank
      scan t new: a, b"""
    )
