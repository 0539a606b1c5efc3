"""The statements of a text."""

from __future__ import annotations

import logging

import pytest

import trickle.sql
from trickle.algebra.names import TableName
from trickle.errors import ParseError, UnsupportedQuery, UnsupportedStatement
from trickle.sql import Drop, Select, parse, query


@pytest.mark.parametrize("text", ["", " \n", ";;;", "-- only\n/* comments */;"])
def test_nothing_to_do(text: str) -> None:
    assert parse(text) == ()


def test_statements_come_in_order() -> None:
    assert parse("DROP TABLE a; -- then\nTABLE b;; (SELECT ';')") == (
        Drop("table", TableName.of(["a"])),
        Select(query("TABLE b")),
        Select(query("(SELECT ';')")),
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) TABLE a",
        "VALUES (1)",
        "FROM a SELECT b",
        "TABLE a",
        "(SELECT 1) UNION TABLE a",
    ],
)
def test_queries(text: str) -> None:
    assert parse(text) == (Select(query(text)),)


@pytest.mark.parametrize(
    "text, name",
    [
        ("GRANT SELECT ON t TO u", "GRANT"),
        ("VACUUM t", "VACUUM"),
        ("OPTIMIZE t", "OPTIMIZE"),
        ("USE s", "USE"),
        ("BEGIN; COMMIT", "BEGIN"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", "ANALYZE"),
        ("CACHE TABLE t", "CACHE"),
        ("ALTER SCHEMA s", "ALTER SCHEMA"),
        ("DROP FUNCTION f", "DROP FUNCTION"),
        ("nonsense", "NONSENSE"),
    ],
)
def test_unknown_statements_are_refused_by_their_first_words(
    text: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(UnsupportedStatement) as caught:
        parse(text)
    assert caught.value.message == f"{name} is not supported"
    assert caught.value.hint
    assert caplog.records == []


def test_the_hint_says_what_is_supported_or_meant() -> None:
    with pytest.raises(UnsupportedStatement) as caught:
        parse("LOCK t")
    assert caught.value.hint is not None
    assert "CREATE, ALTER and DROP" in caught.value.hint
    with pytest.raises(UnsupportedStatement) as caught:
        parse("selct 1")
    assert caught.value.hint == "did you mean SELECT?"


@pytest.mark.parametrize("text", ["'x'", "1", "`select` 1", ", x", ")"])
def test_a_statement_begins_with_a_word(text: str) -> None:
    with pytest.raises(ParseError, match="a statement is expected"):
        parse(text)


def test_every_statement_is_checked_for_its_depth() -> None:
    parse("UPDATE t SET a = ((1))", max_depth=2)
    with pytest.raises(UnsupportedQuery, match="nested too deeply"):
        parse("SELECT 1; UPDATE t SET a = (((1)))", max_depth=2)


def test_exported_names_are_sorted_and_there() -> None:
    assert trickle.sql.__all__ == sorted(trickle.sql.__all__)
    assert all(hasattr(trickle.sql, name) for name in trickle.sql.__all__)
