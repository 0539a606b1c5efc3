"""Text to sqlglot's trees, with every failure as an error of ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from trickle.errors import SetupError, UnsupportedQuery
from trickle.sql.depth import check_depth, room_to_recurse, too_deep
from trickle.sql.respell import name_offsets, respell, select_all_from
from trickle.sql.tokens import Source

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TOKEN = re.compile(r"<Token token_type: \S+ text: (.*?), line: .*?>", re.DOTALL)
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")

# Tokens that sqlglot may read again: fewer than two for each token of any sensible text, and 2^n for some nonsense.
_MIN_PATIENCE = 20_000
_PATIENCE_PER_TOKEN = 20
# What sqlglot's parser falls over with, on text that is no SQL.
_SLIPS = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
_QUERY_STARTS = frozenset(
    (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE, TokenType.L_PAREN)
)


class _Failure(SqlglotError):
    """A syntax error, with the offset that sqlglot knows and does not tell."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, errors=[{"description": message}])
        self.message = message
        self.offset = offset


class _OutOfPatience(Exception):
    """The parser reads the same tokens again and again. No error of sqlglot: it would catch that and go on."""


class _Parser(SparkParser):
    # Functions keep their names. sqlglot would write some in terms of others, with an argument used twice: f(f(f(x)))
    # then has 2^3 leaves.
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}

    def __init__(self, tokens: int) -> None:
        super().__init__(dialect=Spark())
        self.patience = _MIN_PATIENCE + _PATIENCE_PER_TOKEN * tokens

    def raise_error(self, message: str, token: Token | None = None) -> None:
        at = token or self._curr
        offset = at.start if at else self._prev.end + 1 if self._prev else 0
        raise _Failure(message, offset)

    def _retreat(self, index: int) -> None:
        self.patience -= max(0, self._index - index)
        if self.patience < 0:
            raise _OutOfPatience
        super()._retreat(index)

    def _warn_unsupported(self) -> None:
        self.raise_error("unknown statement")


_reading: ContextVar[bool] = ContextVar("reading", default=False)
# What sqlglot logs about a text that Trickle reads is either an error of ours or left to Spark.
logging.getLogger("sqlglot").addFilter(lambda _: not _reading.get())


@contextmanager
def _quiet() -> Iterator[None]:
    before = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(before)


@dataclass(frozen=True)
class Tree:
    """A parsed part of a text. ``bare`` holds the offsets of names that may not take an alias: ``TABLE orders``."""

    root: exp.Expr
    bare: frozenset[int] = frozenset()


def query_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a query."""
    if not tokens or tokens[0].token_type not in _QUERY_STARTS:
        raise _no_query(source, tokens)
    replaced, bare = respell(_whole_strings(source, tokens))
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse(replaced, source.text))
    if not isinstance(root, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        raise _no_query(source, tokens)
    return Tree(root, bare)


def _no_query(source: Source, tokens: Sequence[Token]) -> Exception:
    offset = tokens[0].start if tokens else len(source.text)
    return source.error(offset, "a query is expected", hint="a query begins with SELECT, WITH or VALUES")


def expression_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a value or a condition."""
    replaced, bare = respell(_whole_strings(source, tokens))
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse_into(exp.Condition, replaced, source.text))
    return Tree(root, bare)


def _whole_strings(source: Source, tokens: Sequence[Token]) -> Sequence[Token]:
    """A doubled quote is a quote: sqlglot reads 'it''s' as two strings."""
    found: list[Token] = []
    for token in tokens:
        before = found[-1] if found else None
        if (
            before is None
            or not before.token_type is token.token_type is TokenType.STRING
            or before.end + 1 != token.start
        ):
            found.append(token)
            continue
        text = before.text + source.text[token.start] + token.text
        found[-1] = Token(TokenType.STRING, text, token.line, token.col, before.start, token.end)
    return found


def relation_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a table's name, as a query that reads it."""
    selected = [*select_all_from(tokens[0]), *tokens]
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse(selected, source.text))
    return Tree(root, frozenset(name_offsets(tokens, 0)))


def _parse(
    source: Source,
    tokens: Sequence[Token],
    max_depth: int,
    parse: Callable[[_Parser], Sequence[exp.Expr | None]],
) -> exp.Expr:
    check_depth(tokens, max_depth)
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        raise UnsupportedQuery("the pipe operator |> is not supported", hint="write the query with SELECT ... FROM ...")
    try:
        with room_to_recurse(), _quiet():
            trees = parse(_parser(len(tokens)))
    except RecursionError:
        raise too_deep("the parser ran out of stack") from None
    except _OutOfPatience:
        raise too_deep("the parser can read it in too many ways") from None
    except SqlglotError as error:
        raise _syntax_error(source, tokens, error) from None
    except _SLIPS as error:
        raise source.error(tokens[0].start, f"the query or expression cannot be read ({error})") from None
    if len(trees) != 1 or trees[0] is None:
        raise source.error(tokens[0].start, "one query or expression is expected")
    return trees[0]


def _parser(tokens: int) -> _Parser:
    """A parser for so many tokens."""
    try:
        return _Parser(tokens)
    except TypeError as error:
        # Classes of its compiled form (the extra sqlglot[c]) have no subclasses in Python.
        if "interpreted classes" not in str(error):
            raise
        raise SetupError(
            "sqlglot is installed in its compiled form, whose parser cannot be extended",
            detail=str(error),
            hint="pip uninstall sqlglotc",
        ) from None


def _syntax_error(source: Source, tokens: Sequence[Token], error: SqlglotError) -> Exception:
    failure = error if isinstance(error, _Failure) else error.__cause__
    if isinstance(failure, _Failure):
        return source.error(failure.offset, _plain(failure.message))
    return source.error(tokens[0].start, _plain(str(error)))


def _plain(message: str) -> str:
    """sqlglot's message in our style.

    >>> _plain("Expected table name but got <Token token_type: TokenType.SENTINEL, text: SENTINEL, line: 1, col: 1>")
    'expected table name but got the end'
    """
    text = _ANSI.sub("", message).split("\n")[0].rstrip(". ")
    text = _TOKEN.sub(lambda token: "the end" if token[1] == "SENTINEL" else repr(token[1]), text)
    if missing := _MISSING.match(text):
        return f"{missing[1].upper()} is not complete"
    if text.startswith("Invalid expression / Unexpected token"):
        return "unexpected text"
    return text[:1].lower() + text[1:]
