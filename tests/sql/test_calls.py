"""CALL, SET, DESCRIBE, SHOW TABLES, EXPLAIN."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import ParseError, TrickleError, UnknownFunction, UnsupportedStatement
from trickle.sql import Call, Describe, Explain, SetOption, ShowTables, Statement, parse, query

T = TableName.of(["t"])


@pytest.mark.parametrize(
    "text, statement",
    [
        ("CALL trickle.f()", Call("f")),
        ("call TRICKLE.Reset_Fuse('s')", Call("reset_fuse", ("s",))),
        ("CALL f(1)", Call("f", (1,))),
        (
            "CALL trickle.f('a', -1, +2.5, 3L, 1e3, TRUE, NULL)",
            Call("f", ("a", -1, 2.5, 3, 1000.0, True, None)),
        ),
        ("CALL trickle.f('a', B => 1, c => NULL)", Call("f", ("a",), {"b": 1, "c": None})),
        (
            "CALL trickle.f(ARRAY('x', 'y'), z => [1, 2], e => ARRAY())",
            Call("f", (("x", "y"),), {"z": (1, 2), "e": ()}),
        ),
        ("CALL trickle.f('it''s', 'a' 'b', r'\\d', 'c\\'d', \"e\")", Call("f", ("it's", "ab", "\\d", "c'd", "e"))),
        ("SET trickle.max_parse_depth = 100", SetOption("max_parse_depth", 100)),
        ("SET trickle.Block_Source_DDL = off", SetOption("block_source_ddl", "off")),
        ("SET trickle.x = 'y'", SetOption("x", "y")),
        ("SET trickle.x = true", SetOption("x", True)),
        ("RESET trickle.x", SetOption("x", None)),
        ("DESCRIBE t", Describe(T)),
        ("DESC s.t", Describe(TableName.of(["s", "t"]))),
        ("DESCRIBE TABLE EXTENDED t", Describe(T, extended=True)),
        ("DESCRIBE STREAM TABLE t", Describe(T)),
        ("DESCRIBE FORMATTED t", Describe(T, extended=True)),
        ("DESCRIBE extended", Describe(TableName.of(["extended"]))),
        ("DESCRIBE trickle.stream_tables", Describe(TableName.of(["trickle", "stream_tables"]))),
        ("SHOW TABLES", ShowTables()),
        ("SHOW TABLES IN s LIKE 'a*'", ShowTables("s", "a*")),
        ("SHOW TABLES FROM `s` 'a'", ShowTables("s", "a")),
        ("EXPLAIN SELECT * FROM t", Explain(query("SELECT * FROM t"))),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert parse(text) == (statement,)


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("CALL other.f()", UnknownFunction, "other.f"),
        ("CALL trickle.a.f()", UnknownFunction, "trickle.a.f"),
        ("CALL trickle.f", ParseError, "expected \\("),
        ("CALL trickle.f(1", ParseError, "expected ,"),
        ("CALL trickle.f(1,)", ParseError, "a value"),
        ("CALL trickle.f(1 + 1)", ParseError, "expected ,"),
        ("CALL trickle.f(now())", ParseError, "a value"),
        ("CALL trickle.f(a => 1, 2)", ParseError, "come before"),
        ("CALL trickle.f(a => 1, A => 2)", ParseError, "given twice"),
        ("CALL trickle.f(-'x')", ParseError, "a number"),
        ("CALL trickle.f(ARRAY(ARRAY(1)))", ParseError, "plain values"),
        (f"CALL trickle.f({'9' * 5000})", ParseError, "too long"),
        ("SET spark.sql.shuffle.partitions = 3", UnsupportedStatement, "SET spark.sql"),
        ("SET x = 3", UnsupportedStatement, "SET x"),
        ("SET trickle.x", ParseError, "expected ="),
        ("SET trickle.x = NULL", ParseError, "a value"),
        ("SET trickle.x = 1 2", ParseError, "unexpected '2'"),
        ("RESET", ParseError, "name of a setting"),
        ("DESCRIBE HISTORY t", UnsupportedStatement, "HISTORY"),
        ("DESCRIBE t a", ParseError, "unexpected 'a'"),
        ("SHOW DATABASES", UnsupportedStatement, "SHOW DATABASES"),
        ("SHOW", UnsupportedStatement, "SHOW"),
        ("SHOW TABLES LIKE a", ParseError, "in quotes"),
        ("EXPLAIN", ParseError, "a query"),
        ("EXPLAIN FORMATTED SELECT 1", UnsupportedStatement, "FORMATTED"),
        ("EXPLAIN DROP TABLE t", ParseError, "a query is expected"),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)
