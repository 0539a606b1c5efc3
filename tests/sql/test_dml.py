"""INSERT, UPDATE, DELETE."""

from __future__ import annotations

import pytest

from trickle.algebra.names import TableName
from trickle.errors import InvalidName, ParseError, TrickleError, UnsupportedStatement
from trickle.sql import Assignment, Delete, Insert, SqlText, Statement, Update, parse, query

T = TableName.of(["t"])


@pytest.mark.parametrize(
    "text, statement",
    [
        ("INSERT INTO t VALUES (1, 'a;b')", Insert(T, query("VALUES (1, 'a;b')"))),
        ("INSERT INTO TABLE t SELECT * FROM u", Insert(T, query("SELECT * FROM u"))),
        ("INSERT INTO t (a, b) SELECT 1, 2", Insert(T, query("SELECT 1, 2"), ("a", "b"))),
        ("INSERT INTO t (values, from) VALUES (1, 2)", Insert(T, query("VALUES (1, 2)"), ("values", "from"))),
        ("INSERT INTO t (SELECT 1)", Insert(T, query("(SELECT 1)"))),
        ("INSERT INTO t ((SELECT 1) UNION (SELECT 2))", Insert(T, query("((SELECT 1) UNION (SELECT 2))"))),
        (
            "INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x",
            Insert(T, query("WITH x AS (SELECT 1) SELECT * FROM x")),
        ),
        ("INSERT INTO t FROM u SELECT a", Insert(T, query("FROM u SELECT a"))),
        ("INSERT INTO t TABLE u", Insert(T, query("TABLE u"))),
        ("INSERT OVERWRITE t SELECT 1", Insert(T, query("SELECT 1"), overwrite=True)),
        ("INSERT OVERWRITE TABLE t (a) SELECT 1", Insert(T, query("SELECT 1"), ("a",), overwrite=True)),
        ("UPDATE t SET a = 1", Update(T, (Assignment("a", SqlText("1")),))),
        (
            "UPDATE t AS x SET x.a = x.a + 1, `b` = 'y, WHERE' WHERE a > 3",
            Update(
                T, (Assignment("a", SqlText("x.a + 1")), Assignment("b", SqlText("'y, WHERE'"))), "x", SqlText("a > 3")
            ),
        ),
        (
            "UPDATE t x SET a = CASE WHEN b THEN f(1, 2) ELSE array(3)[0] END, c = d IS NOT DISTINCT FROM e",
            Update(
                T,
                (
                    Assignment("a", SqlText("CASE WHEN b THEN f(1, 2) ELSE array(3)[0] END")),
                    Assignment("c", SqlText("d IS NOT DISTINCT FROM e")),
                ),
                "x",
            ),
        ),
        ("DELETE FROM t", Delete(T)),
        ("DELETE FROM t AS x WHERE x.a = 1 OR b", Delete(T, "x", SqlText("x.a = 1 OR b"))),
        ("DELETE FROM t WHERE a -- why\n = 1", Delete(T, None, SqlText("a -- why\n = 1"))),
    ],
)
def test_statements(text: str, statement: Statement) -> None:
    assert parse(text) == (statement,)


def test_subqueries_in_expressions_have_references() -> None:
    (statement,) = parse("UPDATE s.t SET a = (SELECT max(b) FROM u WHERE u.id = t.id) WHERE t.c IN (TABLE t)")
    assert isinstance(statement, Update)
    assert statement.where is not None
    assert statement.assignments[0].value.bind(lambda n: f"V {n}") == (
        "(SELECT max(b) FROM `V u` AS `u` WHERE u.id = t.id)"
    )
    assert statement.where.bind(lambda n: f"V {n}") == "t.c IN (TABLE `V t`)"


def test_columns_of_the_target_lose_its_schema() -> None:
    (statement,) = parse("UPDATE s.t SET s.t.a = s.t.b WHERE s.t.c = 1 AND x.t.d = 2")
    assert isinstance(statement, Update)
    assert statement.where is not None
    assert statement.assignments[0].column == "a"
    assert statement.assignments[0].value.bind(str) == "t.b"
    assert statement.where.bind(str) == "t.c = 1 AND x.t.d = 2"


def test_offsets_are_those_of_the_part() -> None:
    (statement,) = parse("/* é */ DELETE FROM t WHERE a IN (SELECT b FROM s.u)")
    assert isinstance(statement, Delete)
    assert statement.where is not None
    (ref,) = statement.where.refs
    assert statement.where.text[ref.start : ref.end] == "s.u"


@pytest.mark.parametrize(
    "text, named",
    [
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "PARTITION"),
        ("INSERT INTO t BY NAME SELECT 1", "BY NAME"),
        ("INSERT INTO t REPLACE WHERE a = 1 SELECT 1", "REPLACE WHERE"),
        ("INSERT INTO t DEFAULT VALUES", "DEFAULT VALUES"),
        ("INSERT OVERWRITE DIRECTORY 'x' SELECT 1", "DIRECTORY"),
        ("UPDATE t SET a = u.a FROM u WHERE t.id = u.id", "FROM"),
        ("UPDATE t SET a = DEFAULT", "DEFAULT"),
        ("UPDATE t SET a.b = 1", "a.b"),
        ("UPDATE t AS x SET t.a = 1", "t.a"),
        ("DELETE FROM t USING u WHERE t.id = u.id", "USING"),
        ("DELETE FROM t AS x USING u WHERE t.id = u.id", "USING"),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "WITH before INSERT"),
        ("WITH x AS (SELECT 1), y AS (SELECT 2) DELETE FROM t", "WITH before DELETE"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_with_a_hint(text: str, named: str) -> None:
    with pytest.raises(UnsupportedStatement, match=named) as caught:
        parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text, error",
    [
        ("INSERT t VALUES (1)", ParseError),
        ("INSERT INTO t", ParseError),
        ("INSERT INTO t (a)", ParseError),
        ("INSERT INTO t (a, A) VALUES (1, 2)", InvalidName),
        ("INSERT INTO t DROP TABLE u", ParseError),
        ("INSERT INTO trickle.t VALUES (1)", InvalidName),
        ("UPDATE t", ParseError),
        ("UPDATE t SET", ParseError),
        ("UPDATE t SET a", ParseError),
        ("UPDATE t SET a =", ParseError),
        ("UPDATE t SET a = 1 WHERE", ParseError),
        ("UPDATE t SET a = 1, a = 2", InvalidName),
        ("UPDATE t SET a = (1", ParseError),
        ("UPDATE t SET a = 1)", ParseError),
        ("UPDATE t SET a = 1 AS b", ParseError),
        ("UPDATE t SET a = SELECT 1", ParseError),
        ("UPDATE trickle.t SET a = 1", InvalidName),
        ("DELETE t", ParseError),
        ("DELETE FROM t WHERE a ORDER BY b", ParseError),
        ("DELETE FROM trickle.t", InvalidName),
    ],
)
def test_wrong_statements(text: str, error: type[TrickleError]) -> None:
    with pytest.raises(error):
        parse(text)
