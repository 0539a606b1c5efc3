"""Prints pages, records and JSON on stdout, and notes on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar, assert_never

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trickle.cli.page import Page, Record, Shown
from trickle.cli.session import Session
from trickle.cli.values import is_number, to_json, to_text

Row = TypeVar("Row")

BROKEN_PIPE = 141
"""The exit code of a program that SIGPIPE ends, as shells count it."""

_READABLE_WIDTH = 8
_UNLIMITED = 1_000_000


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
        print_json(shown.as_json())
        if isinstance(shown, Page) and shown.more:
            note(f"only the first {len(shown.rows)} rows are printed; --limit 0 prints all")
        return
    match shown:
        case Page():
            _print_page(shown)
        case Record():
            print_line(shown.sentence)
        case _:
            assert_never(shown)


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
        _print_page(Page(tuple(briefs[0]), tuple(tuple(b.values()) for b in briefs)))


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
    console = _Console(width=None if terminal else _UNLIMITED, highlight=False, soft_wrap=False)
    if terminal and len(page.columns) * _READABLE_WIDTH > console.width:
        _print_records(console, page)
    else:
        console.print(_table(page))
    count = f"{len(page.rows)} row{'' if len(page.rows) == 1 else 's'}"
    print_line(f"first {count}, there are more: --limit 0 shows all" if page.more else count)


def _table(page: Page) -> Table:
    # On a terminal a long value is cut with an ellipsis; elsewhere there is room for everything.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, values in zip(page.columns, _columns(page), strict=True):
        right = any(is_number(value) for value in values)
        table.add_column(Text(to_text(column)), justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
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


def _cell(value: object) -> Text:
    return Text("NULL", style="dim") if value is None else Text(to_text(value))
