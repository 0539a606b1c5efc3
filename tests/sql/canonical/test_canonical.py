"""What is open in a query is settled, and a query in which nothing is open keeps its text."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import UnsupportedQuery
from trickle.sql.build import build_tree
from trickle.sql.canonical import canonical
from trickle.sql.rewrites import rewrite

SCHEMAS = {
    TableName.of(["t"]): {"k": "int", "x": "string", "y": "int", "m": "map<string,int>"},
    TableName.of(["u"]): {"k": "int", "z": "int"},
    TableName.of(["s", "u"]): {"k": "int", "w": "int"},
}
VIEWS = {TableName.of(["v"]): "SELECT k, y + 1 AS y1 FROM t"}


def settled(text: str) -> str:
    return canonical(text, SCHEMAS, views=VIEWS).text


AGGREGATES = [
    ("first(x)", "min(x)"),
    ("first(x, true)", "min(x)"),
    ("first(x) IGNORE NULLS", "min(x)"),
    ("first_value(x) FILTER (WHERE y > 1)", "min(x) FILTER(WHERE y > 1)"),
    ("any_value(x)", "min(x)"),
    ("last(x)", "max(x)"),
    ("last_value(x) RESPECT NULLS", "max(x)"),
    ("collect_list(x)", "sort_array(collect_list(x))"),
    ("array_agg(DISTINCT x) FILTER (WHERE y > 1)", "sort_array(array_agg(DISTINCT x) FILTER(WHERE y > 1))"),
    ("collect_set(x)", "sort_array(collect_set(x))"),
    ("listagg(x)", "LISTAGG(x, '') WITHIN GROUP (ORDER BY x ASC)"),
    ("string_agg(DISTINCT x, ',')", "LISTAGG(DISTINCT x, ',') WITHIN GROUP (ORDER BY x ASC)"),
    (
        "listagg(x, ';') WITHIN GROUP (ORDER BY y DESC)",
        "LISTAGG(x, ';') WITHIN GROUP (ORDER BY y DESC, x ASC)",
    ),
    ("mode(x)", "mode(x, TRUE)"),
    ("mode(x, false)", "mode(x, TRUE)"),
    ("max_by(x, y)", "MAX_BY(x, CASE WHEN NOT y IS NULL THEN named_struct('_0', y, '_1', x) END)"),
    ("min_by(x, y)", "MIN_BY(x, CASE WHEN NOT y IS NULL THEN named_struct('_0', y, '_1', x) END)"),
    ("size(collect_list(first(x)))", "size(collect_list(min(x)))"),
]


@pytest.mark.parametrize("before, after", AGGREGATES)
def test_an_aggregate_that_depends_on_the_order_of_rows(before: str, after: str) -> None:
    assert settled(f"SELECT k, {before} AS r FROM t GROUP BY k") == f"SELECT k, {after} AS r FROM t GROUP BY k"


WINDOWS = [
    (
        "row_number() OVER (PARTITION BY k ORDER BY y DESC)",
        "row_number() OVER (PARTITION BY k ORDER BY y DESC, `x` ASC)",
    ),
    ("ntile(2) OVER (ORDER BY k, x)", "ntile(2) OVER (ORDER BY k, x, `y` ASC)"),
    ("lag(x) IGNORE NULLS OVER (ORDER BY t.y)", "lag(x) IGNORE NULLS OVER (ORDER BY t.y, `k` ASC, `x` ASC)"),
    (
        "sum(y) OVER (ORDER BY k ROWS 1 PRECEDING)",
        "sum(y) OVER (ORDER BY k, `x` ASC, `y` ASC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    ("first_value(x) OVER (PARTITION BY k ORDER BY y)", "first_value(x) OVER (PARTITION BY k ORDER BY y, `x` ASC)"),
    (
        "last_value(x) OVER (PARTITION BY k)",
        (
            "last_value(x) OVER (PARTITION BY k ORDER BY `x` ASC, `y` ASC"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        ),
    ),
    (
        "last_value(x) OVER (PARTITION BY k ORDER BY y)",
        "MAX_BY(x, named_struct('_0', y, '_1', `x`)) OVER (PARTITION BY k ORDER BY y)",
    ),
    (
        "last_value(x, true) OVER (PARTITION BY k ORDER BY y DESC)",
        (
            "MIN_BY(x, CASE WHEN NOT x IS NULL THEN named_struct('_0', y, '_1', `x`) END)"
            " OVER (PARTITION BY k ORDER BY y DESC)"
        ),
    ),
    ("collect_list(x) OVER (PARTITION BY k)", "sort_array(collect_list(x) OVER (PARTITION BY k))"),
    ("collect_set(x) OVER (ORDER BY y)", "sort_array(collect_set(x) OVER (ORDER BY y))"),
    ("listagg(x, ',') OVER (PARTITION BY k)", "LISTAGG(x, ',') WITHIN GROUP (ORDER BY x ASC) OVER (PARTITION BY k)"),
]


@pytest.mark.parametrize("before, after", WINDOWS)
def test_a_window_function_that_depends_on_the_order_of_equal_rows(before: str, after: str) -> None:
    assert settled(f"SELECT k, {before} AS r FROM t") == f"SELECT k, {after} AS r FROM t"


QUERIES = [
    # The columns that decide are those of FROM, wherever they come from.
    (
        "SELECT row_number() OVER (ORDER BY z) AS r FROM t JOIN u ON t.k = u.k",
        (
            "SELECT row_number() OVER (ORDER BY z, `t`.`k` ASC, `x` ASC, `y` ASC, `u`.`k` ASC) AS r"
            " FROM t JOIN u ON t.k = u.k"
        ),
    ),
    (
        "SELECT row_number() OVER (ORDER BY w) AS r FROM u JOIN s.u ON TRUE",
        (
            "SELECT row_number() OVER (ORDER BY w, `default`.`u`.`k` ASC, `z` ASC, `s`.`u`.`k` ASC) AS r"
            " FROM u JOIN s.u ON TRUE"
        ),
    ),
    (
        "SELECT row_number() OVER (ORDER BY y) AS r FROM t LEFT SEMI JOIN u ON t.k = u.k",
        "SELECT row_number() OVER (ORDER BY y, `k` ASC, `x` ASC) AS r FROM t LEFT SEMI JOIN u ON t.k = u.k",
    ),
    (
        "SELECT row_number() OVER (ORDER BY k) AS r FROM v",
        "SELECT row_number() OVER (ORDER BY k, `y1` ASC) AS r FROM v",
    ),
    (
        "WITH c(a, b) AS (SELECT k, y FROM t) SELECT row_number() OVER (ORDER BY a) AS r FROM c",
        "WITH c(a, b) AS (SELECT k, y FROM t) SELECT row_number() OVER (ORDER BY a, `b` ASC) AS r FROM c",
    ),
    (
        "SELECT row_number() OVER (ORDER BY k) AS r FROM t LATERAL VIEW posexplode(array(1)) AS p, c",
        (
            "SELECT row_number() OVER (ORDER BY k, `x` ASC, `y` ASC, `p` ASC, `c` ASC) AS r"
            " FROM t LATERAL VIEW posexplode(array(1)) AS p, c"
        ),
    ),
    # Groups are known by their keys.
    (
        "SELECT k, row_number() OVER (ORDER BY sum(y)) AS r FROM t GROUP BY k",
        "SELECT k, row_number() OVER (ORDER BY sum(y), k ASC) AS r FROM t GROUP BY k",
    ),
    (
        "SELECT upper(x) AS g, row_number() OVER (ORDER BY count(*)) AS r FROM t GROUP BY 1",
        "SELECT upper(x) AS g, row_number() OVER (ORDER BY count(*), upper(x) ASC) AS r FROM t GROUP BY 1",
    ),
    (
        "SELECT k, row_number() OVER (ORDER BY count(*)) AS r FROM t GROUP BY ROLLUP (k)",
        "SELECT k, row_number() OVER (ORDER BY count(*), k ASC, grouping_id() ASC) AS r FROM t GROUP BY ROLLUP (k)",
    ),
    # A named window stays for the functions that it suits.
    (
        "SELECT lag(x) OVER w AS a, rank() OVER w AS b FROM t WINDOW w AS (PARTITION BY k ORDER BY y)",
        (
            "SELECT lag(x) OVER (PARTITION BY k ORDER BY y, `x` ASC) AS a, rank() OVER w AS b"
            " FROM t WINDOW w AS (PARTITION BY k ORDER BY y)"
        ),
    ),
    (
        "SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY y) = 1",
        "SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY y, `x` ASC) = 1",
    ),
    # The first few rows.
    ("SELECT * FROM t ORDER BY y LIMIT 3", "SELECT * FROM t ORDER BY y, `k` ASC, `x` ASC LIMIT 3"),
    (
        "SELECT k, x AS z, y + 1 FROM t ORDER BY k OFFSET 3",
        "SELECT k, x AS z, y + 1 FROM t ORDER BY k, `z` ASC, 3 ASC OFFSET 3",
    ),
    (
        "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY count(*) DESC LIMIT 3",
        "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY count(*) DESC, k ASC LIMIT 3",
    ),
    (
        "SELECT k, y FROM t UNION ALL SELECT z, k FROM u ORDER BY k LIMIT 3",
        "SELECT k, y FROM t UNION ALL SELECT z, k FROM u ORDER BY k, `y` ASC LIMIT 3",
    ),
    (
        "SELECT k FROM t WHERE y IN (SELECT z FROM u ORDER BY k LIMIT 1)",
        "SELECT k FROM t WHERE y IN (SELECT z FROM u ORDER BY k, z ASC LIMIT 1)",
    ),
    ("SELECT 'it''s' AS s, first(x) AS f FROM t", "SELECT 'it\\'s' AS s, min(x) AS f FROM t"),
]


@pytest.mark.parametrize("before, after", QUERIES)
def test_a_query_with_ties(before: str, after: str) -> None:
    assert settled(before) == after


@pytest.mark.parametrize(
    "before", [*(before for before, _ in QUERIES), *(f"SELECT {b} AS r FROM t" for b, _ in WINDOWS)]
)
def test_what_is_settled_stays_as_it_is(before: str) -> None:
    assert settled(settled(before)) == settled(before)


@pytest.mark.parametrize("before", [before for before, _ in (*AGGREGATES, *WINDOWS)])
def test_what_is_settled_can_be_built(before: str) -> None:
    tree = build_tree(settled(f"SELECT {before} AS r FROM t"), SCHEMAS)
    assert rewrite(tree).columns == ("r",)


UNCHANGED = """
select K, min( x ) from t -- a comment
SELECT k, rank() OVER (ORDER BY y), dense_rank() OVER (ORDER BY y), sum(y) OVER (ORDER BY y) FROM t
SELECT sum(y) OVER (PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t
SELECT row_number() OVER (PARTITION BY k ORDER BY x, y) FROM t
SELECT row_number() OVER (ORDER BY count(*)) FROM t
SELECT k, row_number() OVER (ORDER BY k) FROM t GROUP BY k
SELECT collect_list(x) OVER (PARTITION BY k ORDER BY y, x) FROM t
SELECT sort_array(collect_list(x)), array_contains(collect_set(x), 'a') FROM t
SELECT listagg(x, ',') WITHIN GROUP (ORDER BY x), mode(x, true), max_by(x, x), max_by(x, struct(y, x)) FROM t
SELECT mode() WITHIN GROUP (ORDER BY x) FROM t
SELECT * FROM t ORDER BY y
SELECT k, x FROM t ORDER BY x DESC, 1 LIMIT 3
SELECT k, x FROM t ORDER BY ALL LIMIT 3
SELECT k, x FROM t ORDER BY x LIMIT ALL
SELECT k, m FROM t ORDER BY k LIMIT 1
SELECT count(*) AS n FROM t GROUP BY k ORDER BY count(*) LIMIT 1
SELECT 1, k FROM t ORDER BY k LIMIT 1
""".strip().splitlines()


@pytest.mark.parametrize("text", UNCHANGED)
def test_a_query_without_ties_keeps_its_text(text: str) -> None:
    assert canonical(text, SCHEMAS).text == text
    assert canonical(text, SCHEMAS).notices == ()


REFUSED = [
    "SELECT first(m) FROM t",
    "SELECT collect_list(map(k, y)) FROM t",
    "SELECT max_by(m, y) FROM t",
    "SELECT collect_list(m) OVER (PARTITION BY k) FROM t",
    "SELECT nth_value(x, 2) OVER (ORDER BY y) FROM t",
    "SELECT last_value(x) OVER (ORDER BY y DESC, k) FROM t",
    "SELECT collect_list(x) OVER (ORDER BY y) FROM t",
    "SELECT * FROM t PIVOT (max(y) FOR k IN (1, 2)) ORDER BY x LIMIT 1",
    "SELECT row_number() OVER (ORDER BY x) FROM t PIVOT (max(y) FOR k IN (1, 2))",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_settled_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery):
        canonical(text, SCHEMAS)


def test_notices_say_each_thing_once_in_the_order_of_the_text() -> None:
    found = canonical("SELECT last(x) AS a, first(x) AS b, first(y) AS c, mode(x) AS d FROM t", SCHEMAS)
    assert found.notices == (
        "last() may take any row: it is max()",
        "first() may take any row: it is min()",
        "mode() has ties: the smallest value is taken",
    )
