"""Names for what is used once go, and the statement stays the same one."""

from __future__ import annotations

import duckdb
import sqlglot
from sqlglot import exp

from trickle.sql.lower.nesting import MOST_DEEP, nested


def without_names(text: str) -> str:
    query = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(query, exp.Query)
    return nested(query).sql("duckdb")


def test_what_is_used_twice_keeps_its_name() -> None:
    text = "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a), c AS (SELECT x FROM a) SELECT b.x FROM b JOIN c ON TRUE"
    assert without_names(text) == (
        "WITH a AS (SELECT 1 AS x) SELECT b.x FROM (SELECT x FROM a) AS b JOIN (SELECT x FROM a) AS c ON TRUE"
    )


def test_an_alias_stays() -> None:
    assert without_names("WITH a AS (SELECT 1 AS x) SELECT o.x FROM a AS o") == ("SELECT o.x FROM (SELECT 1 AS x) AS o")


def test_unions_and_unused_names() -> None:
    text = "WITH a AS (SELECT 1 AS x), unused AS (SELECT 2 AS x) SELECT x FROM a UNION ALL SELECT 3"
    assert without_names(text) == (
        "WITH unused AS (SELECT 2 AS x) SELECT x FROM (SELECT 1 AS x) AS a UNION ALL SELECT 3"
    )


def test_queries_do_not_lie_inside_of_each_other_without_end() -> None:
    many = 5 * MOST_DEEP
    chain = ", ".join(f"a{n} AS (SELECT x + 1 AS x FROM a{n - 1})" for n in range(1, many))
    text = without_names(f"WITH a0 AS (SELECT 0 AS x), {chain} SELECT x FROM a{many - 1}")
    assert max(map(_depth, sqlglot.parse_one(text).find_all(exp.Select))) == MOST_DEEP
    assert duckdb.sql(text).fetchall() == [(many - 1,)]


def _depth(query: exp.Expr | None) -> int:
    """How many queries a query lies in, itself among them; a name's begins anew."""
    depth = 0
    while query is not None and not isinstance(query, exp.CTE):
        depth += isinstance(query, exp.Select)
        query = query.parent
    return depth
