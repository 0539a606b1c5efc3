"""The builder as a whole: names, views, refusals, and what holds of every tree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.sql.build.given import SCHEMAS, shown
from tests.tpch.schemas import SCHEMAS as TPCH
from trickle.algebra.names import TableName
from trickle.errors import (
    CycleError,
    InvalidName,
    TrickleError,
    UnknownColumn,
    UnknownTable,
    UnsupportedQuery,
    UserError,
)
from trickle.operators import Aggregate, Apply, Generate, Operator, Project, Scan, Window, scans_of, walk
from trickle.sql.build import build_tree

QUERIES = sorted((Path(__file__).parents[2] / "tpch" / "queries").glob("q*.sql"))


def test_the_caller_may_name_the_columns() -> None:
    assert (
        shown("SELECT a + 1, count(*) FROM t GROUP BY a + 1", names=["(a + 1)", "count(1)"])
        == """\
project key as (a + 1), count as count(1)
  aggregate by key: COUNT(*) as count
    project a + 1 as key
      scan t new: a"""
    )


def test_names_must_fit_the_columns() -> None:
    with pytest.raises(UserError, match="1 names for 2 columns"):
        shown("SELECT a, b FROM t", names=["x"])


def test_two_columns_cannot_have_one_name() -> None:
    with pytest.raises(InvalidName, match="'A' is there twice"):
        shown("SELECT a, b AS A FROM t")


def test_views_are_built_where_they_are_read_in_a_scope_of_their_own() -> None:
    views = {TableName.of(["big"]): "WITH t AS (SELECT * FROM u) SELECT a, d FROM t WHERE d > 10"}
    tree = shown("WITH u AS (SELECT 1 AS a) SELECT default.big.d, u.a FROM big JOIN u ON u.a = big.a", views=views)
    assert (
        tree
        == """\
project d, a_1 as a
  inner join on a_1 = a
    filter d > 10
      scan u new: a, d
    project 1 as a_1
      values one: (1)"""
    )


def test_a_view_cannot_read_itself() -> None:
    with pytest.raises(CycleError, match="'V' reads itself"):
        shown("SELECT * FROM v", views={TableName.of(["v"]): "SELECT * FROM V"})


def test_the_users_own_aggregates_are_known_by_name() -> None:
    assert (
        shown("SELECT c, Geo_Mean(a) AS g FROM t GROUP BY c", aggregates=["geo_mean"])
        == """\
project c, geo_mean as g
  aggregate by c: GEO_MEAN(a) as geo_mean
    scan t new: a, c"""
    )


def test_standard_sql_has_null_for_in_and_a_grand_total_over_nothing() -> None:
    assert (
        shown("SELECT a IN (SELECT d FROM u) AS yes, count(*) AS n FROM t GROUP BY ROLLUP (a)", standard=True)
        == """\
project mark as yes, count as n
  apply mark on a_1 = d as mark
    union all
      project a as a_1, count
        aggregate by a: COUNT(*) as count
          scan t new: a
      project NULL as a_1, count
        aggregate: COUNT(*) as count
          scan t new: a
    scan u new: d"""
    )


@pytest.mark.parametrize(
    "query, message",
    [
        ("SELECT a FROM t LIMIT 3", "LIMIT without ORDER BY"),
        ("SELECT a FROM (SELECT a FROM t LIMIT 3)", "LIMIT without ORDER BY"),
        ("SELECT a FROM t SORT BY a LIMIT 3", "LIMIT with SORT BY"),
        ("SELECT a FROM t ORDER BY a LIMIT b", "LIMIT takes a whole number"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT * FROM t PIVOT (sum(a) FOR c IN ('x', 'y'))", "PIVOT"),
        ("SELECT * FROM t UNPIVOT (v FOR n IN (a, b))", "UNPIVOT"),
        ("SELECT TRANSFORM(a) USING 'cat' FROM t", "TRANSFORM"),
        ("SELECT a FROM t VERSION AS OF 3", "a version of a table"),
        ("SELECT a, b, c FROM t GROUP BY CUBE (a, b, c, a + 1, a + 2, a + 3, a + 4)", "128 grouping sets"),
        ("SELECT a FROM t GROUP BY a, ROLLUP (a, b, c), CUBE (a, b, c, m, st)", "128 grouping sets"),
        ("SELECT a FROM t WHERE sum(b) > 1", "an aggregate function in WHERE"),
        ("SELECT * FROM read_files('x')", "the table function read_files"),
        ("SELECT t.b FROM t LEFT JOIN u ON EXISTS (SELECT 1 FROM u v WHERE v.a = t.a AND v.d = u.d)", "both sides"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n FROM r) SELECT n FROM r", "no UNION of a start and a step"),
        ("VALUES (1), ((SELECT max(a) FROM t))", "a subquery stands where none is supported"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_name(query: str, message: str) -> None:
    with pytest.raises(UnsupportedQuery, match=message):
        shown(query)


@pytest.mark.parametrize(
    "query, message, hint",
    [
        ("SELECT amuont FROM sales.orders", "no column 'amuont'", "did you mean 'Amount'?"),
        ("SELECT x.a FROM t", "no column 'x.a'", "did you mean 'a'?"),
        ("SELECT a FROM t JOIN u ON t.a = u.a", "the column 'a' is ambiguous", "say which one: table.a"),
        ("SELECT a FROM t GROUP BY b", "the column 'a' is neither in GROUP BY", "add it to GROUP BY"),
        ("SELECT a FROM t GROUP BY 2", "GROUP BY 2: the SELECT list has 1 columns", None),
        ("SELECT a FROM t ORDER BY 0 LIMIT 1", "ORDER BY 0: the query has 1 columns", None),
        ("SELECT sum(a) OVER w FROM t", "no window 'w'", "WINDOW name AS"),
        ("SELECT a FROM t WHERE (a, b) IN (SELECT a FROM u)", "the two sides of IN differ", None),
        ("SELECT (SELECT a, d FROM u) FROM t", "a subquery that is a value has one column", None),
        ("SELECT a FROM t UNION SELECT a, d FROM u", "the sides of a set operation differ", None),
        ("SELECT * FROM t JOIN u USING (b)", "no column 'b' to join by", None),
        ("SELECT DISTINCT a FROM t ORDER BY b LIMIT 1", "DISTINCT cannot be ordered by 'b'", None),
        ("SELECT * FROM slaes.orders", "no table 'slaes.orders'", "did you mean 'Sales.Orders'?"),
    ],
)
def test_mistakes_say_what_was_likely_meant(query: str, message: str, hint: str | None) -> None:
    with pytest.raises(UserError, match=message) as raised:
        shown(query)
    assert (hint or "") in (raised.value.hint or "")


def test_unknown_names_have_their_own_errors() -> None:
    with pytest.raises(UnknownColumn):
        shown("SELECT nothing FROM t")
    with pytest.raises(UnknownTable):
        shown("SELECT 1 FROM nothing")


def test_a_grown_query_is_refused_before_it_fills_the_memory() -> None:
    doubled = ", ".join(f"x{n} AS (SELECT p.a FROM x{n - 1} p JOIN x{n - 1} q ON p.a = q.a)" for n in range(1, 30))
    with pytest.raises(UnsupportedQuery, match="too large"):
        shown(f"WITH x0 AS (SELECT a FROM t), {doubled} SELECT a FROM x29")


def test_long_chains_are_no_deep_trees() -> None:
    unions = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(500))
    assert shown(unions).count("project") == 501
    conditions = " OR ".join(f"a = {n}" for n in range(5_000))
    assert scans_of(build_tree(f"SELECT a FROM t WHERE {conditions}", SCHEMAS))[0].table == "t"


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_query_of_tpch_has_a_tree(path: Path) -> None:
    tree = build_tree(path.read_text(), TPCH)
    assert isinstance(tree, Project)
    assert {scan.table for scan in scans_of(tree)} <= {str(name) for name in TPCH}
    made = Counter(name for node in walk(tree.input) for name in made_by(node))
    assert made.most_common(1)[0][1] == 1, "a name is made twice"


def test_all_queries_of_tpch_are_there() -> None:
    assert [path.stem for path in QUERIES] == [f"q{n:02}" for n in range(1, 23)]


def made_by(node: Operator) -> list[str]:
    """The columns that an operator makes, and does not pass on."""
    match node:
        case Scan():
            return list(node.columns)
        case Project():
            return [output.name for output in node.outputs if output.name not in node.input.columns]
        case Aggregate() | Window():
            return [output.name for output in node.calls]
        case Generate():
            return list(node.names)
        case Apply():
            return [node.output] if node.output else []
        case _:
            return []


def test_errors_of_the_text_are_errors_of_ours() -> None:
    for text in ("", "SELECT a FROM", "SELECT 1; SELECT 2", "DROP TABLE t"):
        with pytest.raises(TrickleError):
            shown(text)
