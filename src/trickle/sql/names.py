"""Table names as people type them."""

from __future__ import annotations

from trickle.algebra.names import TableName
from trickle.errors import InvalidName

_QUOTES = {"`": "`", '"': '"'}


def table_name(text: str) -> TableName:
    """A name from its text: ``orders``, ``sales.orders``, with parts in backticks or double quotes where needed.

    >>> str(table_name("sales.`Order Lines`"))
    'sales.`Order Lines`'
    """
    parts: list[str] = []
    at = 0
    while True:
        part, at = _part(text, at)
        parts.append(part)
        if at == len(text):
            return TableName.of(parts)
        if text[at] != ".":
            raise InvalidName(f"not a table name: {text[:80]!r}", hint="write table or schema.table")
        at += 1


def _part(text: str, at: int) -> tuple[str, int]:
    if at < len(text) and text[at] in _QUOTES:
        quote = text[at]
        found = []
        at += 1
        while at < len(text):
            if text[at] != quote:
                found.append(text[at])
                at += 1
            elif text[at : at + 2] == quote * 2:
                found.append(quote)
                at += 2
            else:
                return "".join(found), at + 1
        raise InvalidName(f"a quote is not closed in the name {text[:80]!r}")
    end = text.find(".", at)
    end = len(text) if end < 0 else end
    return text[at:end].strip(), end
