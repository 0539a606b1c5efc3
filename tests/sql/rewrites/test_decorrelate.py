from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from tests.sql.rewrites.relations import database, rows_of, shown, through, tree_of
from trickle.errors import UnsupportedQuery
from trickle.operators import Apply, ApplyKind, Filter, Operator, Output, Project, Recursion, RecursiveRef, Scan, col
from trickle.operators import equal as equals
from trickle.sql.rewrites import rewrite
from trickle.sql.rewrites.decorrelate import decorrelate


def test_an_aggregate_found_by_a_value_is_grouped_by_it() -> None:
    assert (
        shown("SELECT id, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t", rewrite)
        == """\
project id, COALESCE(count_1, 0) as n
  left join on a_1 = a
    scan t new: id, a
    aggregate by a_1: COUNT(*) as count_1
      scan u new: a as a_1"""
    )


def test_where_missing_groups_do_not_pass_the_join_is_an_inner_one() -> None:
    assert (
        shown("SELECT id FROM t WHERE b > (SELECT 2 * avg(b) FROM u WHERE u.a = t.a)", rewrite)
        == """\
project id
  inner join on a_1 = a AND b > (2 * avg_1)
    scan t new: id, a, b
    aggregate by a_1: AVG(b_1) as avg_1
      scan u new: a as a_1, b as b_1"""
    )


def test_exists_is_a_semi_join_on_its_conditions() -> None:
    text = "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b <> t.b AND u.id > 1)"
    assert (
        shown(text, rewrite)
        == """\
project id
  semi join on a_1 = a AND b_1 <> b
    scan t new: id, a, b
    project a_1, b_1
      filter id_1 > 1
        scan u new: id as id_1, a as a_1, b as b_1"""
    )


def test_an_aggregate_compared_by_more_than_equality_is_computed_for_all_values_of_the_left() -> None:
    assert (
        shown("SELECT id, (SELECT sum(b) FROM u WHERE u.a < t.a) AS n FROM t", rewrite)
        == """\
project id, sum as n
  inner join on a IS NOT DISTINCT FROM a_2
    scan t new: id, a
    project a_2, sum_1 as sum
      left join on a_2 IS NOT DISTINCT FROM a_3
        aggregate by a_2
          scan t new: a as a_2
        aggregate by a_3: SUM(b_1) as sum_1
          inner join on a_1 < a_3
            aggregate by a_3
              scan t new: a as a_3
            scan u new: a as a_1, b as b_1"""
    )


def test_a_subquery_without_correlation_is_joined_as_it_is() -> None:
    assert (
        shown("SELECT id FROM t WHERE b > (SELECT max(b) FROM u)", rewrite)
        == """\
project id
  inner join on b > max
    scan t new: id, b
    aggregate: MAX(b_1) as max
      scan u new: b as b_1"""
    )


def test_explode_of_the_left_is_done_on_the_left() -> None:
    found = shown("SELECT t.id, e.c FROM t, LATERAL explode(array(t.a, t.b)) AS e(c)", rewrite)
    assert "join" not in found
    assert "generate EXPLODE(ARRAY(a, b)) as c" in found


def test_an_outer_explode_keeps_rows() -> None:
    found = shown("SELECT t.id, e.c FROM t LEFT JOIN LATERAL explode(array(t.a, t.b)) AS e(c) ON TRUE", rewrite)
    assert "join" not in found
    assert "generate outer EXPLODE" in found


def test_a_chain_of_subqueries_grows_by_one_copy_each() -> None:
    subqueries = ", ".join(f"(SELECT count(*) FROM u WHERE u.a < t.a + {n}) AS c{n}" for n in range(8))
    scans = shown(f"SELECT id, {subqueries} FROM t", decorrelate).count("scan t")
    assert scans == 1 + 2 * 8


def two_rows() -> duckdb.DuckDBPyConnection:
    connection = database(0, (0, 0, 0))
    connection.execute("INSERT INTO t VALUES (1, 1, 1, 'x'); INSERT INTO u VALUES (1, 1, 1, 'x'), (2, 1, 2, 'y')")
    connection.execute("CREATE MACRO raise_error(text) AS error(text)")
    return connection


def test_a_scalar_subquery_with_two_rows_raises_an_error_where_it_is_used() -> None:
    text = "SELECT id, (SELECT b FROM u WHERE u.a = t.a) AS n FROM t"
    connection = two_rows()
    with pytest.raises(duckdb.Error, match="a scalar subquery gave more than one row"):
        rows_of(connection, through(text, rewrite))
    connection.execute("UPDATE t SET a = 2")
    assert rows_of(connection, through(text, rewrite)) == {(1, None): 1}


def test_a_scalar_subquery_that_is_unique_is_not_checked() -> None:
    def is_checked(subquery: str) -> bool:
        return "RAISE_ERROR" in shown(f"SELECT id, ({subquery}) AS n FROM t", rewrite)

    assert is_checked("SELECT b FROM u WHERE u.a = t.a")
    assert not is_checked("SELECT DISTINCT a FROM u WHERE u.a = t.a")
    assert not is_checked("SELECT b FROM u WHERE u.a = t.a ORDER BY b LIMIT 1")


def test_a_recursive_query_that_uses_the_row_outside_is_refused() -> None:
    outside = Scan("t", (("a", "a"),))
    base = Project(Filter(Scan("u", (("a", "a_1"),)), equals("a_1", "a")), (Output("n", col("a_1")),))
    step = Project(RecursiveRef("r", ("m",)), (Output("k", exp.Add(this=col("m"), expression=col("a"))),))
    tree = Apply(ApplyKind.INNER, outside, Recursion("r", ("x",), base, step, distinct=False))
    with pytest.raises(UnsupportedQuery, match="recursive query 'r'"):
        decorrelate(tree)


def test_a_tree_without_subqueries_is_the_same_tree() -> None:
    tree: Operator = tree_of("SELECT t.id FROM t JOIN u ON t.a = u.a")
    assert decorrelate(tree) is tree
