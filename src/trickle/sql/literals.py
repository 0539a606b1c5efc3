"""Literals, options and properties: values that a statement carries, read without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from trickle.errors import InvalidOption
from trickle.sql.reader import Reader
from trickle.sql.tokens import Kind

T = TypeVar("T")

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?(?:l|s|y|d|f|bd)?\Z", re.IGNORECASE)
_WHOLE = re.compile(r"\d+[lsy]?\Z", re.IGNORECASE)


def literal(reader: Reader) -> object:
    """Take a string, a number, TRUE, FALSE, NULL, or an array of these."""
    word = reader.peek()
    if word is None:
        raise reader.error("expected a value")
    if word.kind is Kind.STRING:
        return reader.string("a value")
    if word.kind is Kind.NUMBER or word.is_keyword("-") or word.is_keyword("+"):
        return _number(reader)
    for keyword, value in _CONSTANTS.items():
        if reader.accept(keyword):
            return value
    if reader.sees("ARRAY", "(") or reader.sees("["):
        return _array(reader)
    raise reader.error("expected a value", hint="values are 'text', numbers, TRUE, FALSE, NULL and ARRAY(...)")


def _number(reader: Reader) -> int | float:
    negative = reader.accept("-")
    if not negative:
        reader.accept("+")
    word = reader.peek()
    if word is None or word.kind is not Kind.NUMBER or not (match := _NUMBER.match(word.text)):
        raise reader.error("expected a number")
    reader.at += 1
    try:
        value = int(match[1]) if _WHOLE.match(word.text) else float(match[1] + (match[2] or ""))
    except ValueError:
        raise reader.source.error(word.start, "the number is too long") from None
    return -value if negative else value


def _array(reader: Reader) -> tuple[object, ...]:
    closing = "]" if reader.accept("[") else ")"
    if closing == ")":
        reader.expect("ARRAY", "(")
    items: list[object] = []
    while not reader.accept(closing):
        if items:
            reader.expect(",")
        if reader.sees("ARRAY") or reader.sees("["):
            raise reader.error("an array holds plain values")
        items.append(literal(reader))
    return tuple(items)


def options(reader: Reader) -> dict[str, object]:
    """Take ``(name = value, ...)``; names are in lower case."""
    return _once(reader.listed(lambda: (_key(reader, "=").lower(), literal(reader))))


def properties(reader: Reader) -> dict[str, str]:
    """Take ``('key' = 'value', ...)``, the properties of a table; keys keep their case."""
    return _once(reader.listed(lambda: (_key(reader, "="), _property(reader))))


def _key(reader: Reader, separator: str) -> str:
    word = reader.peek()
    quoted = word is not None and word.kind is Kind.STRING
    key = reader.string("a name") if quoted else ".".join(reader.dotted("a name"))
    reader.expect(separator)
    return key


def _property(reader: Reader) -> str:
    value = literal(reader)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, tuple):
        raise reader.error("a property is text, a number, TRUE or FALSE")
    return str(value)


def _once(items: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in items:
        if name in found:
            raise InvalidOption(f"{name!r} is given twice")
        found[name] = value
    return found
