"""Text to sqlglot's trees, with every failure as an error of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from trickle.errors import UnsupportedQuery
from trickle.sql.depth import check_depth, room_to_recurse, too_deep
from trickle.sql.tokens import Source

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TOKEN = re.compile(r"<Token token_type: \S+ text: (.*?), line: .*?>", re.DOTALL)
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")

_SET_OPERATIONS = frozenset((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT))
_QUANTIFIERS = frozenset((TokenType.ALL, TokenType.DISTINCT))
_QUERY_STARTS = frozenset(
    (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE, TokenType.L_PAREN)
)
_NAMES = SparkParser.ID_VAR_TOKENS | {TokenType.IDENTIFIER, TokenType.VAR}


class _Failure(SqlglotError):
    """A syntax error, with the offset that sqlglot knows and does not tell."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, errors=[{"description": message}])
        self.message = message
        self.offset = offset


class _Parser(SparkParser):
    def raise_error(self, message: str, token: Token | None = None) -> None:
        at = token or self._curr
        offset = at.start if at else self._prev.end + 1 if self._prev else 0
        raise _Failure(message, offset)

    def _warn_unsupported(self) -> None:
        self.raise_error("unknown statement")


@dataclass(frozen=True)
class Tree:
    """A parsed part of a text. ``bare`` holds the offsets of names that may not take an alias: ``TABLE orders``."""

    root: exp.Expr
    bare: frozenset[int] = frozenset()


def query_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a query."""
    if not tokens or tokens[0].token_type not in _QUERY_STARTS:
        raise _no_query(source, tokens)
    replaced, bare = _replace_table_keyword(tokens)
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse(replaced, source.text))
    if not isinstance(root, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        raise _no_query(source, tokens)
    return Tree(root, bare)


def _no_query(source: Source, tokens: Sequence[Token]) -> Exception:
    offset = tokens[0].start if tokens else len(source.text)
    return source.error(offset, "a query is expected", hint="a query begins with SELECT, WITH or VALUES")


def expression_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a value or a condition."""
    replaced, bare = _replace_table_keyword(tokens)
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse_into(exp.Condition, replaced, source.text))
    return Tree(root, bare)


def relation_tree(source: Source, tokens: Sequence[Token], max_depth: int) -> Tree:
    """The tree of a table's name, as a query that reads it."""
    selected = [*_select_all_from(tokens[0]), *tokens]
    root = _parse(source, tokens, max_depth, lambda parser: parser.parse(selected, source.text))
    return Tree(root, frozenset(_name_offsets(tokens, 0)))


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
        with room_to_recurse():
            trees = parse(_Parser(dialect=Spark()))
    except RecursionError:
        raise too_deep("the parser ran out of stack") from None
    except SqlglotError as error:
        raise _syntax_error(source, tokens, error) from None
    if len(trees) != 1 or trees[0] is None:
        raise source.error(tokens[0].start, "one query or expression is expected")
    return trees[0]


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


def _replace_table_keyword(tokens: Sequence[Token]) -> tuple[list[Token], frozenset[int]]:
    """Spell ``TABLE orders``, which sqlglot does not know, as ``SELECT * FROM orders`` at the same offset."""
    replaced: list[Token] = []
    bare: set[int] = set()
    for index, token in enumerate(tokens):
        if token.token_type is not TokenType.TABLE or index + 1 == len(tokens):
            replaced.append(token)
            continue
        _refuse_table_argument(tokens, index)
        following = tokens[index + 1]
        if following.token_type in _NAMES and _begins_query(tokens, index):
            replaced += _select_all_from(token)
            bare.update(_name_offsets(tokens, index + 1))
        else:
            replaced.append(token)
    return replaced, frozenset(bare)


def _begins_query(tokens: Sequence[Token], index: int) -> bool:
    if index == 0:
        return True
    before = tokens[index - 1].token_type
    if before in _QUANTIFIERS and index > 1:
        before = tokens[index - 2].token_type
        return before in _SET_OPERATIONS
    return before in _SET_OPERATIONS or before in (TokenType.L_PAREN, TokenType.R_PAREN)


def _refuse_table_argument(tokens: Sequence[Token], index: int) -> None:
    if index < 2:
        return
    before, following = tokens[index - 1].token_type, tokens[index + 1].token_type
    opens_call = before is TokenType.L_PAREN and tokens[index - 2].token_type is TokenType.VAR
    is_argument = opens_call or before in (TokenType.COMMA, TokenType.FARROW)
    if is_argument and (following is TokenType.L_PAREN or (following in _NAMES and before is not TokenType.COMMA)):
        raise UnsupportedQuery(
            "a table as the argument of a function is not supported", hint="join the table instead of passing it"
        )


def _name_offsets(tokens: Sequence[Token], index: int) -> list[int]:
    """Offsets of the parts of the dotted name that begins at ``index``."""
    offsets = [tokens[index].start]
    while index + 2 < len(tokens) and tokens[index + 1].token_type is TokenType.DOT:
        index += 2
        offsets.append(tokens[index].start)
    return offsets


def _select_all_from(token: Token) -> list[Token]:
    spelled = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [
        Token(kind, text, line=token.line, col=token.col, start=token.start, end=token.end) for kind, text in spelled
    ]
