"""Nesting: measured on tokens, before a recursive parser meets it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlglot.tokenizer_core import Token, TokenType

from trickle.errors import UnsupportedQuery

_CLOSES = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
    TokenType.R_BRACE: TokenType.L_BRACE,
    TokenType.END: TokenType.CASE,
}
_OPENS = frozenset(_CLOSES.values())
_NESTED_TYPES = frozenset((TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT))
# sqlglot recurses for each of these, so a run of them nests as parentheses do.
_PREFIXES = frozenset((TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE))
# sqlglot needs up to 30 Python frames for one level of nesting; 200 levels are the most that the setting allows.
_FRAMES = 12_000


def depth_of(tokens: Sequence[Token]) -> int:
    """The deepest nesting of parentheses, brackets, CASE, prefix operators and types such as ARRAY<ARRAY<INT>>."""
    nesting: list[TokenType] = []
    deepest = run = types = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        run = run + 1 if kind in _PREFIXES else 0
        if kind in _OPENS:
            nesting.append(kind)
        elif kind in _CLOSES and nesting and nesting[-1] is _CLOSES[kind]:
            nesting.pop()
        elif kind is TokenType.LT and before in _NESTED_TYPES:
            types += 1
        elif types and not token.text.strip(">"):
            types = max(0, types - len(token.text))
        before = kind
        deepest = max(deepest, len(nesting) + run + types)
    return deepest


def check_depth(tokens: Sequence[Token], max_depth: int) -> None:
    """Refuse what nests deeper than the setting ``max_parse_depth``."""
    depth = depth_of(tokens)
    if depth > max_depth:
        raise too_deep(f"it nests {depth} levels deep and the limit is {max_depth}")


def too_deep(detail: str) -> UnsupportedQuery:
    """The error for nesting that is refused."""
    return UnsupportedQuery(
        "the statement is nested too deeply",
        detail=detail,
        hint="move the inner parts into views, or raise the limit: SET trickle.max_parse_depth = ...",
    )


class _RecursionLimit:
    """The interpreter's recursion limit, raised while any thread parses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = 0

    @contextmanager
    def raised(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._usual, _FRAMES))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    sys.setrecursionlimit(self._usual)


room_to_recurse = _RecursionLimit().raised
