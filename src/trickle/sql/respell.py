"""Spellings of Spark that sqlglot does not know or reads slowly, respelled at the same offsets for its parser.

``TABLE orders`` is a query that sqlglot does not know: it gets ``SELECT * FROM orders``. And it does not know that
``VALUES (1)`` can begin a union inside parentheses: it gets ``SELECT * FROM VALUES (1)``.

A function or column that is called like a type, as in ``date(x)`` or ``map[x]``, is tried as a type first and then read
again: twice the time for each level of nesting. It gets the token of a plain name.

``MAX RECURSION LEVEL 100`` in a recursive query is left out: it says nothing about names.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from trickle.errors import UnsupportedQuery

_SET_OPERATIONS = frozenset((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT))
_QUANTIFIERS = frozenset((TokenType.ALL, TokenType.DISTINCT))
_NAMES = SparkParser.ID_VAR_TOKENS | {TokenType.IDENTIFIER, TokenType.VAR}
_TYPES = SparkParser.TYPE_TOKENS - _SET_OPERATIONS - {TokenType.INTERVAL, TokenType.IDENTIFIER, TokenType.NULL}
_LISTED = (TokenType.L_PAREN, TokenType.NUMBER, TokenType.STRING)
# DECIMAL(12) and DECIMAL(12, 2) are types wherever they stand.
_TYPE_ARGUMENTS = (
    (TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN),
    (TokenType.L_PAREN, TokenType.NUMBER, TokenType.COMMA, TokenType.NUMBER, TokenType.R_PAREN),
)


def respell(tokens: Sequence[Token]) -> tuple[list[Token], frozenset[int]]:
    """The tokens for sqlglot's parser, and the offsets of names that follow TABLE and so may not take an alias."""
    respelled: list[Token] = []
    bare: set[int] = set()
    skipped = 0
    for index, token in enumerate(tokens):
        if _sees(tokens, index, "MAX", "RECURSION", "LEVEL"):
            skipped = 4
        if skipped:
            skipped -= 1
        elif token.token_type in _TYPES and _is_used(tokens, index):
            respelled.append(_as(token, TokenType.VAR, token.text))
        elif token.token_type is TokenType.TABLE and _reads_table(tokens, index):
            respelled += select_all_from(token)
            bare.update(name_offsets(tokens, index + 1))
        elif token.token_type is TokenType.VALUES and _lists_values(tokens, index):
            respelled += (*select_all_from(token), token)
        else:
            respelled.append(token)
    return respelled, frozenset(bare)


def select_all_from(token: Token) -> list[Token]:
    """``SELECT * FROM`` at the place of a token."""
    spelled = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [_as(token, kind, text) for kind, text in spelled]


def name_offsets(tokens: Sequence[Token], index: int) -> list[int]:
    """Offsets of the parts of the dotted name that begins at ``index``."""
    offsets = [tokens[index].start]
    while index + 2 < len(tokens) and tokens[index + 1].token_type is TokenType.DOT:
        index += 2
        offsets.append(tokens[index].start)
    return offsets


def _as(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, line=token.line, col=token.col, start=token.start, end=token.end, comments=token.comments)


def _sees(tokens: Sequence[Token], index: int, *words: str) -> bool:
    if tokens[index].text.upper() != words[0]:
        return False
    return [token.text.upper() for token in tokens[index : index + len(words)]] == list(words)


def _is_used(tokens: Sequence[Token], index: int) -> bool:
    following = tuple(token.token_type for token in tokens[index + 1 : index + 6])
    if following[:1] == (TokenType.L_BRACKET,):
        return True
    if following[:1] != (TokenType.L_PAREN,):
        return False
    return not any(following[: len(arguments)] == arguments for arguments in _TYPE_ARGUMENTS)


def _reads_table(tokens: Sequence[Token], index: int) -> bool:
    if index + 1 == len(tokens):
        return False
    _refuse_table_argument(tokens, index)
    return tokens[index + 1].token_type in _NAMES and _begins_query(tokens, index)


def _lists_values(tokens: Sequence[Token], index: int) -> bool:
    following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    return following in _LISTED and _begins_query(tokens, index)


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
