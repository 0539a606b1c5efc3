"""MERGE INTO."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, ParseError, TrickleError, UnsupportedStatement
from trickle.sql import Assignment, Merge, MergeClause, SqlText, parse


def merge(text: str) -> Merge:
    (statement,) = parse(text)
    assert isinstance(statement, Merge)
    return statement


def test_the_whole_statement() -> None:
    found = merge(
        """
        MERGE INTO s.t AS x USING u y ON x.id = y.id
        WHEN MATCHED AND y.op = CASE WHEN y.a THEN 'D' ELSE 'X' END THEN DELETE
        WHEN MATCHED THEN UPDATE SET x.a = y.a, b = f(y.b, 1)
        WHEN NOT MATCHED AND y.op <> 'D' THEN INSERT (id, a) VALUES (y.id, (SELECT max(a) FROM v))
        WHEN NOT MATCHED BY SOURCE AND x.old THEN UPDATE SET a = NULL
        WHEN NOT MATCHED BY SOURCE THEN DELETE
        """
    )
    assert (found.name, found.alias, found.source_alias) == (TableName.of(["s", "t"]), "x", "y")
    assert found.on == SqlText("x.id = y.id")
    assert found.source.bind(lambda n: f"V {n}") == "`V u`"
    assert found.clauses[:2] == (
        MergeClause("matched", "delete", SqlText("y.op = CASE WHEN y.a THEN 'D' ELSE 'X' END")),
        MergeClause(
            "matched",
            "update",
            assignments=(Assignment("a", SqlText("y.a")), Assignment("b", SqlText("f(y.b, 1)"))),
        ),
    )
    insert = found.clauses[2]
    assert (insert.when, insert.action, insert.condition) == ("not_matched", "insert", SqlText("y.op <> 'D'"))
    assert [assignment.column for assignment in insert.assignments] == ["id", "a"]
    assert insert.assignments[1].value.tables == {TableName.of(["v"])}
    assert found.clauses[3:] == (
        MergeClause(
            "not_matched_by_source", "update", SqlText("x.old"), assignments=(Assignment("a", SqlText("NULL")),)
        ),
        MergeClause("not_matched_by_source", "delete"),
    )


def test_stars() -> None:
    found = merge(
        "MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT *"
    )
    assert found.clauses == (
        MergeClause("matched", "update", star=True),
        MergeClause("not_matched", "insert", star=True),
    )


@pytest.mark.parametrize(
    "using, bound, alias",
    [
        ("u", "`V u`", "u"),
        ("s.u", "`V s.u`", "u"),
        ("u AS y", "`V u`", "y"),
        ("u VERSION AS OF 3 y", "`V u`", "y"),
        ("(SELECT * FROM u) y", "(SELECT * FROM `V u` AS `u`)", "y"),
        ("(SELECT ')' FROM u)", "(SELECT ')' FROM `V u` AS `u`)", "__trickle_source"),
        ("(TABLE u) AS y", "(TABLE `V u`)", "y"),
        ("(VALUES (1, 2)) AS y(id, a)", "(SELECT * FROM (VALUES (1, 2)) AS `y`(`id`, `a`))", "y"),
        ("u AS y(id, a)", "(SELECT * FROM `V u` AS `y`(`id`, `a`))", "y"),
    ],
)
def test_sources(using: str, bound: str, alias: str) -> None:
    found = merge(f"MERGE INTO t USING {using} ON true WHEN MATCHED THEN DELETE")
    assert found.source.bind(lambda n: f"V {n}") == bound
    assert found.source_alias == alias


def test_columns_of_target_and_source_lose_their_schemas() -> None:
    found = merge("MERGE INTO a.t USING b.u ON a.t.id = b.u.id WHEN MATCHED THEN UPDATE SET a.t.x = b.u.x + b.v.x")
    assert found.on.bind(str) == "t.id = u.id"
    assert found.clauses[0].assignments[0].column == "x"
    assert found.clauses[0].assignments[0].value.bind(str) == "u.x + b.v.x"


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("MERGE t USING u ON 1 = 1 WHEN MATCHED THEN DELETE", ParseError, "INTO"),
        ("MERGE INTO t USING u WHEN MATCHED THEN DELETE", ParseError, "expected ON"),
        ("MERGE INTO t USING u ON 1 = 1", ParseError, "WHEN"),
        ("MERGE INTO t USING u ON WHEN MATCHED THEN DELETE", ParseError, "an expression"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN INSERT *", ParseError, "UPDATE SET"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN NOT MATCHED THEN DELETE", ParseError, "INSERT"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", ParseError, "name of a column"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", ParseError, "2 columns and 1"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN NOT MATCHED THEN INSERT VALUES (1)", ParseError, "expected \\("),
        ("MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", ParseError, "last WHEN"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1, a = 2", InvalidName, "twice"),
        ("MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN UPDATE SET u.a = 1", UnsupportedStatement, "u.a"),
        ("MERGE INTO a.t USING b.t ON 1 = 1 WHEN MATCHED THEN DELETE", UnsupportedStatement, "both called"),
        ("MERGE INTO t USING f(1) ON 1 = 1 WHEN MATCHED THEN DELETE", UnsupportedStatement, "function"),
        ("MERGE INTO t USING (u) ON 1 = 1 WHEN MATCHED THEN DELETE", ParseError, "a query is expected"),
        ("MERGE INTO t USING (SELECT 1 ON 1 = 1", ParseError, "expected \\)"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING u ON 1 = 1", UnsupportedStatement, "SCHEMA EVOLUTION"),
        ("MERGE INTO trickle.t USING u ON 1 = 1 WHEN MATCHED THEN DELETE", InvalidName, "read-only"),
        ("MERGE INTO t USING a.b.c ON 1 = 1 WHEN MATCHED THEN DELETE", InvalidName, "one or two parts"),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)
