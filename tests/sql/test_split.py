"""Several statements in one text."""

from __future__ import annotations

import pytest

from trickle.errors import ParseError
from trickle.sql import Piece, split


@pytest.mark.parametrize("text", ["", "   \n\t ", ";", ";;;", " ; ;\n;", "-- nothing", "/* a /* nested */ b */ ; -- x"])
def test_no_statement(text: str) -> None:
    assert split(text) == ()


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1;;SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT \";\"; SELECT `;`", ["SELECT ';'", 'SELECT ";"', "SELECT `;`"]),
        ("SELECT 'a\\';b'; SELECT 2", ["SELECT 'a\\';b'", "SELECT 2"]),
        ("SELECT 'a''; b'; SELECT 2", ["SELECT 'a''; b'", "SELECT 2"]),
        ("SELECT r'\\'; SELECT 2", ["SELECT r'\\'", "SELECT 2"]),
        ("SELECT `a``;b`; SELECT 2", ["SELECT `a``;b`", "SELECT 2"]),
        ("SELECT 1 -- ; no\n + 2; SELECT 3", ["SELECT 1 -- ; no\n + 2", "SELECT 3"]),
        ("SELECT /* ; /* ; */ ; */ 1; SELECT 2", ["SELECT /* ; /* ; */ ; */ 1", "SELECT 2"]),
        ("SHOW TABLES LIKE 'a;b'; CALL trickle.f(';')", ["SHOW TABLES LIKE 'a;b'", "CALL trickle.f(';')"]),
        ("/* head */ SELECT 1 /* tail */; -- end", ["SELECT 1"]),
        ("\ufeffSELECT 1", ["SELECT 1"]),
    ],
)
def test_pieces(text: str, pieces: list[str]) -> None:
    assert [piece.text for piece in split(text)] == pieces


def test_a_piece_knows_where_it_begins() -> None:
    text = "SELECT 'ü日';\n\n  -- next\n  SELECT 2;"
    second = split(text)[1]
    assert second == Piece("SELECT 2", offset=text.index("SELECT 2"), line=4, column=3)
    assert text[second.offset :].startswith(second.text)


@pytest.mark.parametrize(
    "text, what, line, column",
    [
        ("SELECT 1;\nSELECT 'abc", "unterminated string", 2, 8),
        ('SELECT "abc', "unterminated string", 1, 8),
        ("SELECT 'a\\'", "unterminated string", 1, 8),
        ("SELECT `abc", "unterminated quoted name", 1, 8),
        ("SELECT 1 /* a /* b */", "unterminated comment", 1, 10),
        ("SELECT '-- /*', `'`, /* ' */ \"x", "unterminated string", 1, 30),
        ("SELECT 1\0", "NUL character", 1, 9),
        ("SELECT '\ud800'", "surrogate", 1, 9),
        ("SELECT x'zz'", "cannot read the text", 1, 1),
    ],
)
def test_text_that_cannot_be_read_is_refused_where_it_begins(text: str, what: str, line: int, column: int) -> None:
    with pytest.raises(ParseError, match=what) as caught:
        split(text)
    assert (caught.value.line, caught.value.column) == (line, column)
