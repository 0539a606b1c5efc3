"""Table references are found where they are, and nothing else in the text changes."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, TrickleError, UnsupportedQuery
from trickle.sql import TableRef, query


def view(name: TableName) -> str:
    return f"V {name}"


BOUND = [
    # The name itself
    ("SELECT * FROM orders", "SELECT * FROM `V orders` AS `orders`"),
    ("SELECT * FROM sales.orders", "SELECT * FROM `V sales.orders` AS `orders`"),
    ("SELECT * FROM sales . orders", "SELECT * FROM `V sales.orders` AS `orders`"),
    ("SELECT * FROM default.orders", "SELECT * FROM `V orders` AS `orders`"),
    ("select*from`orders`o", "select*from`V orders`o"),
    ("SELECT * FROM `a``b`", "SELECT * FROM `V ``a````b``` AS `a``b`"),
    ("SELECT * FROM s.`x.y`", "SELECT * FROM `V s.``x.y``` AS `x.y`"),
    ("SELECT 'ü日' FROM größe, `日 本`", "SELECT 'ü日' FROM `V ``größe``` AS `größe`, `V ``日 本``` AS `日 本`"),
    ("/* é /* x */ FROM no */\n-- FROM no\nSELECT 1 FROM a", "SELECT 1 FROM `V a` AS `a`"),
    ("SELECT 'FROM no', \"FROM no\", `FROM no` FROM a", "SELECT 'FROM no', \"FROM no\", `FROM no` FROM `V a` AS `a`"),
    ("SELECT 1 FROM a /* x */ , /* y */ b -- z", "SELECT 1 FROM `V a` AS `a` /* x */ , /* y */ `V b` AS `b`"),
    ("SELECT 10L, 3.0BD FROM a", "SELECT 10L, 3.0BD FROM `V a` AS `a`"),
    ("SELECT table, date FROM order", "SELECT table, date FROM `V order` AS `order`"),
    # Aliases
    ("SELECT * FROM a x", "SELECT * FROM `V a` x"),
    ("SELECT * FROM a AS x", "SELECT * FROM `V a` AS x"),
    ("SELECT * FROM a AS x(b, c)", "SELECT * FROM `V a` AS x(b, c)"),
    ("SELECT * FROM a -- none\n WHERE 1", "SELECT * FROM `V a` AS `a` -- none\n WHERE 1"),
    ("SELECT * FROM a TABLESAMPLE (5 ROWS)", "SELECT * FROM `V a` TABLESAMPLE (5 ROWS) AS `a`"),
    ("SELECT * FROM a TABLESAMPLE (5 PERCENT) x", "SELECT * FROM `V a` TABLESAMPLE (5 PERCENT) x"),
    (
        "SELECT * FROM a TABLESAMPLE (BUCKET 1 OUT OF 9) REPEATABLE (7) WHERE b",
        "SELECT * FROM `V a` TABLESAMPLE (BUCKET 1 OUT OF 9) REPEATABLE (7) AS `a` WHERE b",
    ),
    (
        "SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2)) p",
        "SELECT * FROM `V a` AS `a` PIVOT (sum(x) FOR y IN (1, 2)) p",
    ),
    ("SELECT * FROM a UNPIVOT (x FOR y IN (b, c))", "SELECT * FROM `V a` AS `a` UNPIVOT (x FOR y IN (b, c))"),
    ("SELECT * FROM a LATERAL VIEW explode(b) c AS d", "SELECT * FROM `V a` AS `a` LATERAL VIEW explode(b) c AS d"),
    ("SELECT /*+ BROADCAST(a) */ * FROM a", "SELECT /*+ BROADCAST(a) */ * FROM `V a` AS `a`"),
    # Joins
    ("SELECT * FROM a JOIN b USING (x)", "SELECT * FROM `V a` AS `a` JOIN `V b` AS `b` USING (x)"),
    ("SELECT * FROM a, b", "SELECT * FROM `V a` AS `a`, `V b` AS `b`"),
    ("SELECT * FROM a x, a y", "SELECT * FROM `V a` x, `V a` y"),
    (
        "SELECT * FROM a LEFT ANTI JOIN b ON a.x = b.x",
        "SELECT * FROM `V a` AS `a` LEFT ANTI JOIN `V b` AS `b` ON a.x = b.x",
    ),
    ("SELECT * FROM a NATURAL JOIN b", "SELECT * FROM `V a` AS `a` NATURAL JOIN `V b` AS `b`"),
    ("SELECT * FROM (a JOIN b ON 1 = 1) c", "SELECT * FROM (`V a` AS `a` JOIN `V b` AS `b` ON 1 = 1) c"),
    ("SELECT * FROM (a)", "SELECT * FROM (`V a` AS `a`)"),
    (
        "SELECT * FROM a, LATERAL (SELECT a.x FROM b) y",
        "SELECT * FROM `V a` AS `a`, LATERAL (SELECT a.x FROM `V b` AS `b`) y",
    ),
    # Subqueries
    ("SELECT (SELECT max(x) FROM a)", "SELECT (SELECT max(x) FROM `V a` AS `a`)"),
    ("SELECT 1 WHERE x IN (SELECT y FROM a)", "SELECT 1 WHERE x IN (SELECT y FROM `V a` AS `a`)"),
    ("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM a)", "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM `V a` AS `a`)"),
    (
        "SELECT x FROM a GROUP BY x HAVING count(*) > (SELECT 1 FROM b)",
        "SELECT x FROM `V a` AS `a` GROUP BY x HAVING count(*) > (SELECT 1 FROM `V b` AS `b`)",
    ),
    (
        "SELECT * FROM (SELECT * FROM (SELECT * FROM a) x) y",
        "SELECT * FROM (SELECT * FROM (SELECT * FROM `V a` AS `a`) x) y",
    ),
    # Other shapes of a query
    ("TABLE a", "TABLE `V a`"),
    ("TABLE s.a ORDER BY 1 LIMIT 3", "TABLE `V s.a` ORDER BY 1 LIMIT 3"),
    ("TABLE a UNION ALL TABLE b", "TABLE `V a` UNION ALL TABLE `V b`"),
    ("SELECT 1 WHERE EXISTS (TABLE a)", "SELECT 1 WHERE EXISTS (TABLE `V a`)"),
    ("WITH x AS (TABLE a) TABLE x", "WITH x AS (TABLE `V a`) TABLE x"),
    ("FROM a SELECT b", "FROM `V a` AS `a` SELECT b"),
    ("VALUES (1, 2), (3, 4)", "VALUES (1, 2), (3, 4)"),
    ("SELECT * FROM (VALUES 1, 2 UNION TABLE a)", "SELECT * FROM (VALUES 1, 2 UNION TABLE `V a`)"),
    ("SELECT 1 WHERE x IN (VALUES (1))", "SELECT 1 WHERE x IN (VALUES (1))"),
    ("WITH x AS (TABLE a) VALUES (1) UNION TABLE x", "WITH x AS (TABLE `V a`) VALUES (1) UNION TABLE x"),
    ("((SELECT 1 FROM a))", "((SELECT 1 FROM `V a` AS `a`))"),
    (
        "(SELECT 1 FROM a) UNION (SELECT 2 FROM b) EXCEPT SELECT 3 FROM c",
        "(SELECT 1 FROM `V a` AS `a`) UNION (SELECT 2 FROM `V b` AS `b`) EXCEPT SELECT 3 FROM `V c` AS `c`",
    ),
    (
        "SELECT 1 FROM a MINUS SELECT 2 FROM b INTERSECT ALL SELECT 3 FROM c",
        "SELECT 1 FROM `V a` AS `a` MINUS SELECT 2 FROM `V b` AS `b` INTERSECT ALL SELECT 3 FROM `V c` AS `c`",
    ),
    # Relations that are no tables
    (
        "SELECT * FROM range(5), explode(array(1)) e, VALUES (1) v(a), inline(array(struct(1)))",
        "SELECT * FROM range(5), explode(array(1)) e, VALUES (1) v(a), inline(array(struct(1)))",
    ),
    ("SELECT * FROM f((SELECT 1 FROM a))", "SELECT * FROM f((SELECT 1 FROM `V a` AS `a`))"),
    # Names of common table expressions
    ("WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
    ("WITH T AS (SELECT 1) SELECT * FROM `t`", "WITH T AS (SELECT 1) SELECT * FROM `t`"),
    ("WITH t AS (SELECT 1) SELECT * FROM s.t", "WITH t AS (SELECT 1) SELECT * FROM `V s.t` AS `t`"),
    ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "WITH t AS (SELECT * FROM `V t` AS `t`) SELECT * FROM t"),
    (
        "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a, b",
        "WITH a AS (SELECT * FROM `V b` AS `b`), b AS (SELECT * FROM a) SELECT * FROM a, b",
    ),
    (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t JOIN u) SELECT * FROM t",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t JOIN `V u` AS `u`) SELECT * FROM t",
    ),
    (
        "WITH RECURSIVE t(n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT * FROM t",
        "WITH RECURSIVE t(n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT * FROM t",
    ),
    (
        "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, t",
        "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, `V t` AS `t`",
    ),
    (
        "WITH t AS (SELECT 1) SELECT * FROM t UNION ALL SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t)",
        "WITH t AS (SELECT 1) SELECT * FROM t UNION ALL SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t)",
    ),
    (
        "WITH a AS (WITH b AS (SELECT * FROM a) SELECT * FROM b) SELECT * FROM a, b",
        "WITH a AS (WITH b AS (SELECT * FROM `V a` AS `a`) SELECT * FROM b) SELECT * FROM a, `V b` AS `b`",
    ),
    # Columns that carry a schema
    ("SELECT sales.orders.amount FROM sales.orders", "SELECT orders.amount FROM `V sales.orders` AS `orders`"),
    ("SELECT `SALES`.Orders.x.y FROM sales.orders", "SELECT Orders.x.y FROM `V sales.orders` AS `orders`"),
    ("SELECT s.t.* FROM s.t", "SELECT t.* FROM `V s.t` AS `t`"),
    ("SELECT default.t.a FROM t", "SELECT t.a FROM `V t` AS `t`"),
    ("SELECT s.t.a FROM s.t x", "SELECT s.t.a FROM `V s.t` x"),
    ("SELECT s.u.a FROM s.t", "SELECT s.u.a FROM `V s.t` AS `t`"),
    ("SELECT s.t.a FROM (SELECT * FROM s.t) x", "SELECT s.t.a FROM (SELECT * FROM `V s.t` AS `t`) x"),
    (
        "SELECT 1 FROM s.t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = s.t.a)",
        "SELECT 1 FROM `V s.t` AS `t` WHERE EXISTS (SELECT 1 FROM `V u` AS `u` WHERE u.a = t.a)",
    ),
    (
        "SELECT a.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id",
        "SELECT `a.t`.id FROM `V a.t` AS `a.t` JOIN `V b.t` AS `b.t` ON `a.t`.id = `b.t`.id",
    ),
    ("SELECT t.x FROM a.t, b.t", "SELECT t.x FROM `V a.t` AS `t`, `V b.t` AS `t`"),
    (
        "SELECT a.t.x, t.y FROM a.t JOIN (SELECT 1) t",
        "SELECT `a.t`.x, t.y FROM `V a.t` AS `a.t` JOIN (SELECT 1) t",
    ),
    # Versions
    ("SELECT * FROM a VERSION AS OF 3", "SELECT * FROM `V a` AS `a`"),
    ("SELECT * FROM s.a FOR VERSION AS OF '12' x", "SELECT * FROM `V s.a` x"),
    ("SELECT * FROM a VERSION AS OF 3 TABLESAMPLE (5 ROWS)", "SELECT * FROM `V a` TABLESAMPLE (5 ROWS) AS `a`"),
    ("SELECT * FROM a version", "SELECT * FROM `V a` version"),
]


@pytest.mark.parametrize("text, bound", BOUND)
def test_binding(text: str, bound: str) -> None:
    assert query(text).bind(view) == bound


@pytest.mark.parametrize("text", [text for text, _ in BOUND])
def test_each_reference_is_where_it_says(text: str) -> None:
    found = query(text)
    for ref in found.refs:
        assert ref.name.table.replace("`", "``").lower() in found.text[ref.start : ref.end].lower()
    assert found.tables == {ref.name for ref in found.refs}


def test_tables_of_a_query() -> None:
    found = query("WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN S.B JOIN s.b y WHERE EXISTS (SELECT 1 FROM A)")
    assert found.tables == {TableName.of(["a"]), TableName.of(["s", "b"])}


def test_a_reference_keeps_its_version() -> None:
    old, new = query("SELECT * FROM a VERSION AS OF 3 o JOIN a n").refs
    assert old == TableRef(TableName.of(["a"]), start=14, end=31, alias_needed=False, version=3, alias_at=31)
    assert new.version is None


def test_views_can_depend_on_the_version() -> None:
    found = query("SELECT * FROM a VERSION AS OF 3 o JOIN a n")
    assert found.bind_refs(lambda ref: f"{ref.name}@{ref.version}") == "SELECT * FROM `a@3` o JOIN `a@None` n"


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("SELECT * FROM a.b.c", InvalidName, "one or two parts"),
        ("SELECT * FROM a.b.c.d", TrickleError, "one or two parts|must be named"),
        ("SELECT * FROM __trickle_x", InvalidName, "reserved"),
        ("SELECT * FROM `a\x07`", InvalidName, "control character"),
        (f"SELECT * FROM {'a' * 200}", InvalidName, "too long"),
        ("SELECT * FROM ``", TrickleError, "empty"),
        ("SELECT * FROM delta.`/data/x`", UnsupportedQuery, "not queried directly"),
        ("SELECT * FROM parquet.`x`", UnsupportedQuery, "not queried directly"),
        ("SELECT * FROM a TIMESTAMP AS OF '2026-01-01'", UnsupportedQuery, "TIMESTAMP AS OF"),
        ("SELECT * FROM a VERSION AS OF 'x'", UnsupportedQuery, "whole number"),
        ("SELECT * FROM a@v3", UnsupportedQuery, "options"),
        ("SELECT * FROM a WITH (NOLOCK)", TrickleError, "options"),
        ("SELECT * FROM 'a'", UnsupportedQuery, "must be named"),
        ("SELECT * FROM :name", UnsupportedQuery, "must be named"),
        ("SELECT * FROM IDENTIFIER('a')", UnsupportedQuery, "IDENTIFIER"),
        ("SELECT * FROM STREAM(a)", UnsupportedQuery, "STREAM"),
        ("SELECT * FROM f(TABLE(a))", UnsupportedQuery, "argument"),
        ("SELECT * FROM f(TABLE a)", UnsupportedQuery, "argument"),
        ("SELECT * FROM f(1, x => TABLE a)", UnsupportedQuery, "argument"),
        ("SELECT * FROM a |> WHERE b", UnsupportedQuery, "pipe"),
        ("WITH x AS (DELETE FROM a) SELECT 1", UnsupportedQuery, "DELETE"),
        ("SELECT a INTO b FROM c", UnsupportedQuery, "INTO"),
    ],
)
def test_references_that_cannot_be_bound_are_refused(text: str, error: type[TrickleError], message: str) -> None:
    with pytest.raises(error, match=message):
        query(text)


def test_the_refusal_of_a_path_says_what_to_do() -> None:
    with pytest.raises(UnsupportedQuery) as caught:
        query("SELECT * FROM delta.`/data/x`")
    assert caught.value.hint is not None
    assert "attach_table" in caught.value.hint


def test_system_views_can_be_read() -> None:
    assert query("SELECT * FROM trickle.stream_tables").refs[0].name.is_system
