"""Prints pages, records and JSON on stdout, and notes on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar, assert_never

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from trickle.cli.page import Page, Record, Shown
from trickle.cli.session import Session
from trickle.cli.values import is_number, to_json, to_text

Row = TypeVar("Row")

BROKEN_PIPE = 141
"""The exit code of a program that SIGPIPE ends, as shells count it."""

_READABLE_WIDTH = 8
_GAP = 3
_UNLIMITED = 2**31


class _Console(Console):
    def on_broken_pipe(self) -> None:
        leave_quietly()


def leave_quietly() -> NoReturn:
    """End when nobody reads the output any more (``| head``)."""
    # What is still in the buffer must go somewhere when the interpreter flushes it at exit.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise SystemExit(BROKEN_PIPE)


def show(session: Session, shown: Shown) -> None:
    """Print a result as the session wants it."""
    if session.as_json:
        show_document([shown])
        return
    match shown:
        case Page():
            _print_page(shown)
            count = f"{len(shown.rows)} row{'' if len(shown.rows) == 1 else 's'}"
            print_line(f"first {count}, there are more: --limit 0 shows all" if shown.more else count)
        case Record():
            print_line(shown.sentence)
        case _:
            assert_never(shown)


def show_document(results: Sequence[Shown], *, array: bool = False) -> None:
    """Print results as one JSON document: a single one as it is, several in an array."""
    documents = [result.as_json() for result in results]
    print_json(documents if array or len(documents) != 1 else documents[0])
    for result in results:
        if isinstance(result, Page) and result.more:
            note(f"only the first {len(result.rows)} rows are printed; --limit 0 prints all")


def show_rows(
    session: Session, rows: Sequence[Row], brief: Callable[[Row], Mapping[str, object]], *, empty: str
) -> None:
    """Print rows of one kind: in full as JSON, in brief for people."""
    if session.as_json:
        print_json([to_json(row) for row in rows])
    elif not rows:
        print_line(empty)
    else:
        briefs = [brief(row) for row in rows]
        _print_page(Page(tuple(briefs[0]), tuple(tuple("" if v is None else v for v in b.values()) for b in briefs)))


def print_json(document: object) -> None:
    """Print one JSON document, indented for people."""
    indent = 2 if sys.stdout.isatty() else None
    _write(json.dumps(document, ensure_ascii=False, indent=indent) + "\n")


def print_line(text: str) -> None:
    """Print a sentence."""
    _write(text + "\n")


def note(text: str) -> None:
    """Print a sentence that is not part of the result."""
    sys.stderr.write(text + "\n")


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_quietly()


def _print_page(page: Page) -> None:
    terminal = sys.stdout.isatty()
    console = _Console(width=None if terminal else _UNLIMITED, highlight=False)
    widths = _widths(page, console.width)
    if widths is None:
        _print_records(console, page)
    else:
        console.print(_table(page, widths))


def _widths(page: Page, available: int) -> list[int] | None:
    """A width for each column. Long text is cut where there is no room, numbers never are; None if it will not fit."""
    columns = _columns(page)
    natural = [
        max(map(cell_len, [to_text(name), *map(to_text, values)]))
        for name, values in zip(page.columns, columns, strict=True)
    ]
    whole = [_is_numeric(values) for values in columns]
    for cap in range(min(max(natural, default=0), available), 0, -1):
        widths = [width if keep else min(width, cap) for width, keep in zip(natural, whole, strict=True)]
        if sum(widths) + _GAP * (len(widths) - 1) <= available:
            return widths
        if cap <= _READABLE_WIDTH:
            break
    return None


def _table(page: Page, widths: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, values, width in zip(page.columns, _columns(page), widths, strict=True):
        justify: JustifyMethod = "right" if _is_numeric(values) else "left"
        table.add_column(Text(to_text(name)), justify=justify, width=width, no_wrap=True, overflow="ellipsis")
    for row in page.rows:
        table.add_row(*[_cell(value) for value in row])
    return table


def _print_records(console: Console, page: Page) -> None:
    """Too many columns for the terminal: one line per value."""
    for number, row in enumerate(page.rows, 1):
        console.print(Text(f"row {number}", style="bold"))
        grid = Table.grid(padding=(0, 2))
        for column, value in zip(page.columns, row, strict=True):
            grid.add_row(Text(to_text(column), style="dim"), _cell(value))
        console.print(grid)


def _columns(page: Page) -> list[tuple[object, ...]]:
    return list(zip(*page.rows, strict=True)) if page.rows else [()] * len(page.columns)


def _is_numeric(values: Sequence[object]) -> bool:
    return any(is_number(value) for value in values)


def _cell(value: object) -> Text:
    return Text("NULL", style="dim") if value is None else Text(to_text(value))
