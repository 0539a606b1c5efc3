from __future__ import annotations

from tests.sql.build.given import shown


def test_rollup_leaves_out_keys_from_the_right() -> None:
    tree = shown("SELECT a, c, sum(b) AS s FROM t GROUP BY ROLLUP (a, c)")
    assert (
        tree
        == """\
project a_1 as a, c_1 as c, sum as s
  union all
    project a as a_1, c as c_1, sum
      aggregate by a, c: SUM(b) as sum
        scan t new: a, b, c
    project a as a_1, NULL as c_1, sum
      aggregate by a: SUM(b) as sum
        scan t new: a, b
    project NULL as a_1, NULL as c_1, sum
      filter count > 0
        aggregate: SUM(b) as sum, COUNT(*) as count
          scan t new: b"""
    )


def test_grouping_is_a_constant_of_each_branch() -> None:
    tree = shown("SELECT a, c, grouping(a) AS g, grouping_id() AS i FROM t GROUP BY GROUPING SETS ((a), (c), ())")
    assert (
        tree
        == """\
project a_1 as a, c_1 as c, grouping as g, grouping_id as i
  union all
    project a as a_1, NULL as c_1, CAST(0 AS TINYINT) as grouping, CAST(1 AS BIGINT) as grouping_id
      aggregate by a
        scan t new: a
    project NULL as a_1, c as c_1, CAST(1 AS TINYINT) as grouping, CAST(2 AS BIGINT) as grouping_id
      aggregate by c
        scan t new: c
    project NULL as a_1, NULL as c_1, CAST(1 AS TINYINT) as grouping, CAST(3 AS BIGINT) as grouping_id
      filter count > 0
        aggregate: COUNT(*) as count
          scan t new: a"""
    )


def test_sets_multiply() -> None:
    tree = shown("SELECT a, b, c FROM t GROUP BY a, ROLLUP (b), GROUPING SETS ((c))")
    assert (
        tree
        == """\
project a_1 as a, b_1 as b, c_1 as c
  union all
    project a as a_1, b as b_1, c as c_1
      aggregate by a, b, c
        scan t new: a, b, c
    project a as a_1, NULL as b_1, c as c_1
      aggregate by a, c
        scan t new: a, c"""
    )


def test_composite_keys_of_a_rollup_go_together() -> None:
    tree = shown("SELECT a, b, c, count(*) AS n FROM t GROUP BY ROLLUP ((a, b), c)")
    assert (
        tree
        == """\
project a_1 as a, b_1 as b, c_1 as c, count as n
  union all
    project a as a_1, b as b_1, c as c_1, count
      aggregate by a, b, c: COUNT(*) as count
        scan t new: a, b, c
    project a as a_1, b as b_1, NULL as c_1, count
      aggregate by a, b: COUNT(*) as count
        scan t new: a, b
    project NULL as a_1, NULL as b_1, NULL as c_1, count
      filter count > 0
        aggregate: COUNT(*) as count
          scan t new: a"""
    )


def test_with_rollup_is_about_all_keys() -> None:
    tree = shown("SELECT a, count(*) AS n FROM t GROUP BY a WITH ROLLUP")
    assert (
        tree
        == """\
project a_1 as a, count as n
  union all
    project a as a_1, count
      aggregate by a: COUNT(*) as count
        scan t new: a
    project NULL as a_1, count
      filter count > 0
        aggregate: COUNT(*) as count
          scan t new: a"""
    )


def test_outer_references_follow_the_new_names_of_keys() -> None:
    tree = shown("SELECT a, (SELECT max(d) FROM u WHERE u.a = t.a) AS m FROM t GROUP BY ROLLUP (a)")
    assert (
        tree
        == """\
project a_1 as a, scalar as m
  apply scalar as scalar
    union all
      project a as a_1
        aggregate by a
          scan t new: a
      project NULL as a_1
        filter count > 0
          aggregate: COUNT(*) as count
            scan t new: a
    aggregate: MAX(d) as max
      filter a_2 = a_1
        scan u new: a as a_2, d"""
    )
