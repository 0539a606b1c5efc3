"""Several statements in one text."""

from __future__ import annotations

from dataclasses import dataclass

from trickle.sql.positions import locate
from trickle.sql.tokens import read_source


@dataclass(frozen=True)
class Piece:
    """One statement of a text: without its semicolon, and where it begins in the whole text."""

    text: str
    offset: int
    line: int
    column: int


def split(text: str) -> tuple[Piece, ...]:
    r"""The statements of a text; semicolons in strings, comments and quoted names do not count.

    >>> [piece.text for piece in split("SELECT ';' -- a; b\n; ; SELECT 2")]
    ["SELECT ';'", 'SELECT 2']
    """
    pieces = []
    for words in read_source(text).statements():
        start, end = words[0].start, words[-1].end
        pieces.append(Piece(text[start:end], start, *locate(text, start)))
    return tuple(pieces)
