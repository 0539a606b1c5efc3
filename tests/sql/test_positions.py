"""Errors say where they are."""

from __future__ import annotations

import pytest

from trickle.errors import ParseError
from trickle.sql import parse, query
from trickle.sql.positions import show_line, syntax_error


def shown(error: ParseError) -> tuple[str, str]:
    assert error.detail is not None
    _, line, caret = error.detail.split("\n")
    return line, caret


@pytest.mark.parametrize(
    "text, line, column, pointed_at",
    [
        ("SELECT a FROM t WHERE )", 1, 23, ")"),
        ("SELECT 1;\n\nSELECT a\n  FROM t JOIN JOIN u", 4, 15, "JOIN u"),
        ("/* ü /* 日本 */ */\nSELECT 'é' FROM t GROUP x", 2, 25, "x"),
        ("SELECT 1; CREATE TABLE t (a INT,, b INT)", 1, 33, ","),
        ("UPDATE t\nSET a = 1,\n    b = ) WHERE c", 3, 9, ")"),
        ("CALL trickle.f(a => 1 + 2)", 1, 23, "+"),
    ],
)
def test_line_and_column_are_those_of_the_whole_text(text: str, line: int, column: int, pointed_at: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    shown_line, caret = shown(error)
    assert shown_line == text.split("\n")[line - 1]
    assert shown_line[caret.index("^") :].startswith(pointed_at)
    assert f"line {line}, column {column}" in error.message


def test_messages_are_plain() -> None:
    with pytest.raises(ParseError) as caught:
        query("SELECT a FROM")
    assert caught.value.message == "expected table name but got the end at line 1, column 14"
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["SELECT 1 +", "SELECT a FROM t WHERE", "SELECT CASE WHEN a THEN b FROM t", "WITH a AS"]
)
def test_an_incomplete_query_is_a_parse_error_at_its_end(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        query(text)
    assert "Token" not in caught.value.message
    assert "class" not in caught.value.message


def test_a_long_line_is_cut_around_the_caret() -> None:
    line, caret = show_line("x" * 5000 + "!" + "y" * 5000, 5000).split("\n")
    assert len(line) == 100
    assert line[caret.index("^")] == "!"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in show_line("a\x1b[31mb", 5)


def test_an_offset_past_the_end_is_the_end() -> None:
    error = syntax_error("ab", 99, "unexpected end")
    assert (error.line, error.column) == (1, 3)
