"""A text and its tokens.

Two views of the same tokens are kept: sqlglot's own, which its parser takes, and words, which the statement parsers
read one by one. Offsets are into the whole text, so every error can say where it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from trickle.errors import ParseError
from trickle.sql.positions import syntax_error

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_PARTS = re.compile(r"\S+")
_QUOTED_OR_COMMENT = re.compile(
    r"""--[^\n]*|/\*|(?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"|'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`]*`|['"`]""",
    re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_OPEN_ENDED = {"'": "string", '"': "string", "`": "quoted name", "/*": "comment"}


class Kind(Enum):
    """What a word is: only the first can be a keyword."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()


@dataclass(frozen=True, slots=True)
class Word:
    """A token as the statement parsers see it. ``text`` is without quotes; ``end`` is exclusive."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_keyword(self, keyword: str) -> bool:
        return self.kind in (Kind.WORD, Kind.SYMBOL) and self.text.upper() == keyword


class _Tokenizer(Spark.Tokenizer):
    # sqlglot reads what follows SHOW, CALL, EXPLAIN ... as one raw string up to the next semicolon, even a quoted one.
    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, eq=False)
class Source:
    """The whole text given, and its tokens."""

    text: str
    tokens: Sequence[Token]

    def error(self, offset: int, message: str, *, hint: str | None = None) -> ParseError:
        return syntax_error(self.text, offset, message, hint=hint)

    def tokens_between(self, start: int, end: int) -> list[Token]:
        """sqlglot's tokens of a part of the text."""
        low = bisect_left(self.tokens, start, key=lambda t: t.start)
        high = bisect_left(self.tokens, end, lo=low, key=lambda t: t.start)
        return list(self.tokens[low:high])

    def statements(self) -> list[list[Word]]:
        """The words of each statement; empty statements are left out."""
        found: list[list[Word]] = [[]]
        for word in self._words():
            if word.kind is Kind.SYMBOL and word.text == ";":
                found.append([])
            else:
                found[-1].append(word)
        return [words for words in found if words]

    def _words(self) -> Iterator[Word]:
        last = -1
        for token in self.tokens:
            # `10L` is three tokens at the same place: 10, ::, BIGINT.
            if token.start != last:
                yield from _words_of(self.text, token)
            last = token.start


def read_source(text: str) -> Source:
    """Tokenise a text; what cannot be read is refused with its position."""
    _check_characters(text)
    readable = " " + text[1:] if text.startswith("\ufeff") else text
    try:
        tokens = _Tokenizer(dialect=Spark()).tokenize(readable)
    except TokenError as error:
        offset, what = _find_open_end(readable)
        message = f"unterminated {what}" if what else _reason(error)
        raise syntax_error(text, offset, message) from None
    return Source(text, tokens)


def _check_characters(text: str) -> None:
    if found := _UNREADABLE.search(text):
        name = "a NUL character" if found.group() == "\0" else "half of a surrogate pair"
        raise syntax_error(text, found.start(), f"the text holds {name}")


def _reason(error: TokenError) -> str:
    cause = error.__cause__
    return f"cannot read the text: {cause}" if cause else "cannot read the text"


def _find_open_end(text: str) -> tuple[int, str | None]:
    at = 0
    while match := _QUOTED_OR_COMMENT.search(text, at):
        at = match.end()
        if match.group() == "/*":
            at = _comment_end(text, at)
        if match.group() in _OPEN_ENDED and (at < 0 or match.group() != "/*"):
            return match.start(), _OPEN_ENDED[match.group()]
    return 0, None


def _comment_end(text: str, at: int) -> int:
    depth = 1
    while match := _COMMENT_EDGE.search(text, at):
        at = match.end()
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return at
    return -1


def _words_of(text: str, token: Token) -> Iterator[Word]:
    start, end = token.start, token.end + 1
    spelled = text[start:end]
    kind = token.token_type
    if spelled.startswith("`"):
        yield Word(Kind.QUOTED, token.text, start, end)
    elif kind in _STRINGS:
        yield Word(Kind.STRING, token.text, start, end)
    elif kind is TokenType.NUMBER:
        yield Word(Kind.NUMBER, spelled, start, end)
    elif kind is TokenType.VAR or spelled[0].isalpha():
        for part in _PARTS.finditer(spelled):
            yield Word(Kind.WORD, part.group(), start + part.start(), start + part.end())
    else:
        yield Word(Kind.SYMBOL, spelled, start, end)
