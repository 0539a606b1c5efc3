"""Where something is in a text: line and column, and the line with a caret under it."""

from __future__ import annotations

from trickle.errors import ParseError

_SHOWN = 100


def locate(text: str, offset: int) -> tuple[int, int]:
    r"""The line and column of an offset, both counted from 1.

    >>> locate("SELECT\n  x", 9)
    (2, 3)
    """
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def show_line(text: str, offset: int) -> str:
    """The line that holds an offset, with a caret under it; long lines are cut around the caret."""
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    line_end = len(text) if line_end < 0 else line_end
    start = max(line_start, offset - _SHOWN // 2)
    shown = text[start : min(line_end, start + _SHOWN)]
    printable = "".join(c if c.isprintable() else " " for c in shown)
    return f"{printable}\n{' ' * (offset - start)}^"


def syntax_error(text: str, offset: int, message: str, *, hint: str | None = None) -> ParseError:
    """A parse error that says where: line, column, and the line itself."""
    offset = max(0, min(offset, len(text)))
    line, column = locate(text, offset)
    return ParseError(
        f"{message} at line {line}, column {column}",
        line=line,
        column=column,
        detail="\n" + show_line(text, offset),
        hint=hint,
    )
