"""Each rule alone: what it does, and what it leaves."""

from __future__ import annotations

from tests.sql.rewrites.relations import shown
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.connect import connect
from trickle.sql.rewrites.decorrelate import decorrelate
from trickle.sql.rewrites.factor import factor
from trickle.sql.rewrites.null_aware import null_aware
from trickle.sql.rewrites.prune import prune
from trickle.sql.rewrites.push_filters import push_filters
from trickle.sql.rewrites.simplify import simplify
from trickle.sql.rewrites.strengthen import strengthen


class TestSimplify:
    def test_projections_and_filters_are_merged(self) -> None:
        text = "SELECT b + 1 AS c FROM (SELECT a * 2 AS b FROM t WHERE a > 0) x WHERE b < 9"
        assert "project (a * 2) + 1 as c" in shown(text, lambda tree: simplify(push_filters(tree)))

    def test_a_value_is_not_computed_twice(self) -> None:
        assert shown("SELECT b + b AS c FROM (SELECT a * 2 AS b FROM t) x", simplify).count("a * 2") == 1

    def test_a_volatile_value_stays_where_it_is(self) -> None:
        found = shown("SELECT b + 1 AS c FROM (SELECT rand() AS b FROM t) x", simplify)
        assert found.splitlines()[:2] == ["project b_1 + 1 as c", "  project RAND() as b_1"]

    def test_unions_are_flat(self) -> None:
        text = "SELECT a FROM t UNION ALL (SELECT a FROM u UNION ALL SELECT a FROM v)"
        assert shown(text, simplify).count("union all") == 1

    def test_no_value_comes_under_a_lambda_that_hides_its_column(self) -> None:
        text = "SELECT transform(array(1), a -> a + c) AS d FROM (SELECT a + 1 AS c FROM t) x"
        found = shown(text, simplify)
        parameter = found.split("ARRAY(1), ")[1].split(" ->")[0]
        assert f"{parameter} + ({parameter} + 1)" not in found


class TestFactor:
    def test_an_equality_of_every_branch_joins(self) -> None:
        text = "SELECT t.id FROM t, u WHERE (t.a = u.a AND t.b > 1 AND u.b < 3) OR (u.b < 3 AND t.a = u.a AND u.id = 1)"
        assert (
            shown(text, lambda tree: push_filters(factor(tree)))
            == """\
project id
  inner join on a = a_1 AND (b > 1 OR id_1 = 1)
    scan t new: id, a, b
    filter b_1 < 3
      scan u new: id as id_1, a as a_1, b as b_1"""
        )

    def test_a_branch_that_asks_for_nothing_else_is_the_condition(self) -> None:
        assert "filter a = 1\n" in shown("SELECT id FROM t WHERE (a = 1 AND b > 2) OR a = 1", factor)

    def test_conditions_of_joins_and_subqueries_are_factored(self) -> None:
        either = "(t.a = u.a AND u.b > 1) OR (t.a = u.a AND u.s = 'x')"
        joined = shown(f"SELECT t.id, u.b FROM t LEFT JOIN u ON {either}", factor)
        assert "left join on a = a_1 AND (b_1 > 1 OR s_1 = 'x')" in joined
        asked = shown(f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {either})", rewrite)
        assert "semi join on a = a_1\n" in asked

    def test_what_not_every_branch_has_stays(self) -> None:
        for condition in ("a = 1 OR (a = 2 AND b = 1)", "(a = 1 AND b = 1) OR (a = 1 AND b = 2) OR b = 3"):
            text = f"SELECT id FROM t WHERE {condition}"
            assert shown(text, factor) == shown(text, lambda tree: tree)

    def test_a_volatile_condition_stays(self) -> None:
        text = "SELECT id FROM t WHERE (a = 1 AND rand() < 1) OR (a = 1 AND b = 1)"
        assert shown(text, factor) == shown(text, lambda tree: tree)


class TestPushFilters:
    def test_conditions_go_to_their_side_of_a_join(self) -> None:
        assert (
            shown("SELECT t.id FROM t, u WHERE t.a = u.a AND t.b > 1 AND u.b < 3", push_filters)
            == """\
project id
  inner join on a = a_1
    filter b > 1
      scan t new: id, a, b
    filter b_1 < 3
      scan u new: a as a_1, b as b_1"""
        )

    def test_a_left_join_takes_conditions_on_its_left_only(self) -> None:
        text = "SELECT t.id FROM t LEFT JOIN u ON t.a = u.a AND u.b > 1 AND t.b > 1 WHERE t.id > 1 AND u.id > 2"
        assert (
            shown(text, push_filters)
            == """\
project id
  filter id_1 > 2
    left join on a = a_1 AND b > 1
      filter id > 1
        scan t new: id, a, b
      filter b_1 > 1
        scan u new: id as id_1, a as a_1, b as b_1"""
        )

    def test_a_condition_on_keys_goes_below_the_groups_and_one_on_results_does_not(self) -> None:
        text = "SELECT a, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) x WHERE a > 1 AND n > 2"
        found = shown(text, push_filters)
        assert found.index("filter count") < found.index("aggregate by a") < found.index("filter a > 1")

    def test_a_condition_goes_into_every_part_of_a_union(self) -> None:
        text = "SELECT a FROM (SELECT a FROM t UNION ALL SELECT b FROM u) x WHERE a > 1"
        found = shown(text, push_filters)
        assert found.index("union all") < found.index("filter")
        assert found.count("filter") == 2

    def test_the_first_rows_are_taken_before_a_condition_on_them(self) -> None:
        found = shown("SELECT a FROM (SELECT a, b FROM t ORDER BY a, b LIMIT 3) x WHERE b > 1", push_filters)
        assert found.index("filter") < found.index("top 3")

    def test_a_window_is_filtered_below_by_its_partition_only(self) -> None:
        ranked = "SELECT a, b, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM t"
        found = shown(f"SELECT r FROM ({ranked}) x WHERE a > 1 AND b > 2", push_filters)
        assert found.index("filter b > 2") < found.index("window") < found.index("filter a > 1")

    def test_a_volatile_condition_stays(self) -> None:
        found = shown("SELECT t.id FROM t, u WHERE t.a = u.a AND rand() < t.b", push_filters)
        assert found.index("filter RAND() < b") < found.index("inner join")


class TestConnect:
    def test_relations_are_joined_where_a_condition_connects_them(self) -> None:
        text = "SELECT t.id FROM t, u, v WHERE t.a = v.a AND u.b = v.b"
        assert (
            shown(text, lambda tree: connect(push_filters(tree)))
            == """\
project id
  project id, a, b_1, a_2, b_2
    inner join on b_1 = b_2
      inner join on a = a_2
        scan t new: id, a
        scan v new: a as a_2, b as b_2
      scan u new: b as b_1"""
        )

    def test_a_cross_product_that_is_wanted_stays(self) -> None:
        assert shown("SELECT t.id FROM t, u", connect) == shown("SELECT t.id FROM t, u", push_filters)

    def test_joins_with_conditions_stay_in_their_order(self) -> None:
        text = "SELECT t.id FROM t JOIN u ON t.a = u.a JOIN v ON v.a = t.a"
        assert shown(text, connect) == shown(text, lambda tree: tree)


class TestStrengthen:
    def test_a_condition_that_drops_nulls_makes_a_left_join_an_inner_one(self) -> None:
        for condition in ("u.b > 1", "u.b + t.b = 3", "u.b IS NOT NULL", "u.b IN (1, 2)", "NOT u.b > 1"):
            text = f"SELECT t.id FROM t LEFT JOIN u ON t.a = u.a WHERE {condition}"
            assert "inner join" in shown(text, strengthen), condition

    def test_a_condition_that_keeps_nulls_does_not(self) -> None:
        for condition in ("u.b IS NULL", "u.b <=> t.b", "coalesce(u.b, 1) > 0", "u.b > 1 OR t.b > 1"):
            text = f"SELECT t.id FROM t LEFT JOIN u ON t.a = u.a WHERE {condition}"
            assert "left join" in shown(text, strengthen), condition
        assert "left join" in shown("SELECT t.id, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE t.b > 1", strengthen)

    def test_it_reaches_through_joins_above(self) -> None:
        text = "SELECT t.id FROM t LEFT JOIN u ON t.a = u.a JOIN v ON v.a = u.b"
        assert "left join" not in shown(text, strengthen)

    def test_groups_without_a_row_are_not_lost(self) -> None:
        text = "SELECT * FROM (SELECT t.a, count(u.b) AS n FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.a) x WHERE n >= 0"
        assert "left join" in shown(text, strengthen)


class TestPrune:
    def test_scans_read_what_is_used(self) -> None:
        text = "SELECT x.a FROM (SELECT * FROM t) x JOIN (SELECT * FROM u) y ON x.b = y.b"
        found = shown(text, prune)
        assert "scan t new: a, b\n" in found
        assert found.endswith("scan u new: b as b_1")

    def test_a_distinct_keeps_its_columns(self) -> None:
        assert "aggregate by a, b" in shown("SELECT a FROM (SELECT DISTINCT a, b FROM t) x", prune)

    def test_counting_rows_takes_one_column(self) -> None:
        assert shown("SELECT count(*) AS n FROM t", prune).endswith("scan t new: id")

    def test_a_window_that_nobody_reads_goes_away(self) -> None:
        text = "SELECT a FROM (SELECT a, rank() OVER (ORDER BY b) AS r FROM t) x"
        assert "window" not in shown(text, prune)


class TestNullAware:
    def test_not_in_becomes_three_anti_joins(self) -> None:
        found = shown("SELECT id FROM t WHERE a NOT IN (SELECT a FROM u)", lambda tree: null_aware(decorrelate(tree)))
        assert [line.strip() for line in found.splitlines() if "join" in line] == [
            "anti join on a IS NULL",
            "anti join",
            "anti join on a_1 = a",
        ]

    def test_several_columns_stay_together(self) -> None:
        text = "SELECT id FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u)"
        assert shown(text, lambda tree: null_aware(decorrelate(tree))).count("anti join") == 1
