"""Stream tables in SQL."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, InvalidOption, ParseError, TrickleError, UnsupportedStatement
from trickle.sql import (
    AlterStreamTable,
    CreateStreamTable,
    DropStreamTable,
    RefreshStreamTable,
    Statement,
    parse,
    query,
)

S = TableName.of(["s"])
Q = query("SELECT * FROM t")


@pytest.mark.parametrize(
    "text, statement",
    [
        ("CREATE STREAM TABLE s AS SELECT * FROM t", CreateStreamTable(S, Q)),
        ("CREATE OR REPLACE STREAM TABLE s AS SELECT * FROM t", CreateStreamTable(S, Q, or_replace=True)),
        ("CREATE STREAM TABLE IF NOT EXISTS s AS SELECT * FROM t", CreateStreamTable(S, Q, if_not_exists=True)),
        (
            "CREATE STREAM TABLE s WITH (Every = '5s', max = -3, ratio = 2.5, on = TRUE, n = NULL) AS SELECT * FROM t",
            CreateStreamTable(S, Q, {"every": "5s", "max": -3, "ratio": 2.5, "on": True, "n": None}),
        ),
        (
            "CREATE STREAM TABLE s WITH ('a.b' = 'x', c.d = ARRAY('y', 'z')) AS SELECT * FROM t",
            CreateStreamTable(S, Q, {"a.b": "x", "c.d": ("y", "z")}),
        ),
        (
            "CREATE MATERIALIZED VIEW s WITH (trickle.stream = true, schedule = '5s') AS SELECT * FROM t",
            CreateStreamTable(S, Q, {"schedule": "5s"}),
        ),
        (
            "CREATE OR REPLACE MATERIALIZED VIEW s WITH ('trickle.stream' = 'TRUE') AS SELECT * FROM t",
            CreateStreamTable(S, Q, or_replace=True),
        ),
        ("ALTER STREAM TABLE s SET (a = 'x')", AlterStreamTable(S, "set", {"a": "x"})),
        ("ALTER STREAM TABLE s AS SELECT * FROM t", AlterStreamTable(S, "set", query=Q)),
        ("ALTER STREAM TABLE s SET (a = 1) AS SELECT * FROM t", AlterStreamTable(S, "set", {"a": 1}, Q)),
        ("ALTER STREAM TABLE s RESUME", AlterStreamTable(S, "resume")),
        ("ALTER MATERIALIZED VIEW s SUSPEND", AlterStreamTable(S, "suspend")),
        ("DROP STREAM TABLE s", DropStreamTable(S)),
        ("DROP STREAM TABLE IF EXISTS s CASCADE", DropStreamTable(S, if_exists=True, cascade=True)),
        ("DROP MATERIALIZED VIEW s RESTRICT", DropStreamTable(S)),
        ("REFRESH STREAM TABLE s", RefreshStreamTable(S)),
        ("REFRESH STREAM TABLE s FORCE", RefreshStreamTable(S, force=True)),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY s", RefreshStreamTable(S)),
        ("REFRESH MATERIALIZED VIEW concurrently", RefreshStreamTable(TableName.of(["concurrently"]))),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert parse(text) == (statement,)


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("CREATE MATERIALIZED VIEW s AS SELECT 1", UnsupportedStatement, "only when asked"),
        (
            "CREATE MATERIALIZED VIEW s WITH (trickle.stream = false) AS SELECT 1",
            UnsupportedStatement,
            "only when asked",
        ),
        ("CREATE STREAM TABLE s (a INT) AS SELECT 1", UnsupportedStatement, "its columns from its query"),
        ("CREATE STREAM TABLE s", ParseError, "expected AS"),
        ("CREATE STREAM TABLE s AS", ParseError, "a query"),
        ("CREATE STREAM TABLE s AS DELETE FROM t", ParseError, "a query is expected"),
        ("CREATE STREAM TABLE s WITH () AS SELECT 1", ParseError, "a name"),
        ("CREATE STREAM TABLE s WITH (a = AUTO) AS SELECT 1", ParseError, "a value"),
        ("CREATE STREAM TABLE s WITH (a 'x') AS SELECT 1", ParseError, "expected ="),
        ("CREATE STREAM TABLE s WITH (a = 1, A = 2) AS SELECT 1", InvalidOption, "'a' is given twice"),
        ("CREATE STREAM TABLE trickle.s AS SELECT 1", InvalidName, "read-only"),
        ("CREATE OR REPLACE STREAM TABLE IF NOT EXISTS s AS SELECT 1", ParseError, "contradict"),
        ("ALTER STREAM TABLE s", ParseError, "expected SET"),
        ("ALTER STREAM TABLE s RENAME TO u", ParseError, "expected SET"),
        ("REFRESH TABLE s", UnsupportedStatement, "REFRESH TABLE"),
        ("REFRESH STREAM TABLE s QUICKLY", ParseError, "unexpected 'QUICKLY'"),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)


def test_the_hint_for_a_materialized_view_can_be_typed() -> None:
    with pytest.raises(UnsupportedStatement) as caught:
        parse("CREATE MATERIALIZED VIEW s AS SELECT 1")
    assert caught.value.hint is not None
    assert "WITH (trickle.stream = true)" in caught.value.hint
