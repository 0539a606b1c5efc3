from __future__ import annotations

from tests.sql.build.given import shown


def test_lateral_views_add_columns() -> None:
    tree = shown("SELECT a, p, e FROM t LATERAL VIEW OUTER posexplode(arr) x AS p, e")
    assert (
        tree
        == """\
project a, p, e
  generate outer POSEXPLODE(arr) as p, e
    scan t new: a, arr"""
    )


def test_the_columns_of_a_map_are_key_and_value() -> None:
    tree = shown("SELECT x.key, value FROM t LATERAL VIEW explode(m) x")
    assert (
        tree
        == """\
project key, value
  generate EXPLODE(m) as key, value
    scan t new: m"""
    )


def test_lateral_generators_are_no_subqueries() -> None:
    tree = shown("SELECT a, x FROM t, LATERAL explode(arr) AS e(x)")
    assert (
        tree
        == """\
project a, x
  generate EXPLODE(arr) as x
    scan t new: a, arr"""
    )


def test_a_left_join_with_a_generator_keeps_rows_without_elements() -> None:
    tree = shown("SELECT a, x FROM t LEFT JOIN LATERAL explode(arr) AS e(x) ON TRUE")
    assert (
        tree
        == """\
project a, x
  generate outer EXPLODE(arr) as x
    scan t new: a, arr"""
    )


def test_a_left_join_with_a_condition_on_elements_is_a_subquery() -> None:
    tree = shown("SELECT a, x FROM t LEFT JOIN LATERAL explode(arr) AS e(x) ON x > 1")
    assert (
        tree
        == """\
project a, col as x
  apply left on col > 1
    scan t new: a, arr
    generate EXPLODE(arr) as col
      values one: (1)"""
    )


def test_generators_of_the_list_come_before_windows() -> None:
    tree = shown("SELECT explode(arr) AS x, count(*) OVER (PARTITION BY c) AS n FROM t")
    assert (
        tree
        == """\
project x, count as n
  window by c: COUNT(*) OVER (PARTITION BY c) as count
    generate EXPLODE(arr) as x
      scan t new: c, arr"""
    )


def test_generators_can_explode_what_was_aggregated() -> None:
    tree = shown("SELECT c, explode(collect_list(b)) AS x FROM t GROUP BY c")
    assert (
        tree
        == """\
project c, x
  generate EXPLODE(collect_list) as x
    aggregate by c: COLLECT_LIST(b) as collect_list
      scan t new: b, c"""
    )


def test_outer_generators_keep_the_row() -> None:
    tree = shown("SELECT explode_outer(arr) AS x FROM t")
    assert (
        tree
        == """\
project x
  generate outer EXPLODE(arr) as x
    scan t new: arr"""
    )


def test_stack_makes_columns_of_its_arguments() -> None:
    tree = shown("SELECT stack(2, a, b, b, a) FROM t")
    assert (
        tree
        == """\
project col0, col1
  generate STACK(2, a, b, b, a) as col0, col1
    scan t new: a, b"""
    )


def test_posexplode_takes_two_names() -> None:
    tree = shown("SELECT posexplode(arr) AS (place, x) FROM t")
    assert (
        tree
        == """\
project place, x
  generate POSEXPLODE(arr) as place, x
    scan t new: arr"""
    )


def test_rows_can_be_ordered_by_what_a_generator_makes() -> None:
    tree = shown("SELECT explode(arr) AS x FROM t ORDER BY x DESC LIMIT 1")
    assert (
        tree
        == """\
project x
  top 1 by x desc
    project x
      generate EXPLODE(arr) as x
        scan t new: arr"""
    )
