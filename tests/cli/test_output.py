from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from rich.cells import cell_len
from rich.text import Text

from trickle.cli.output import show, show_rows
from trickle.cli.page import Page
from trickle.cli.session import Session

PLAIN, JSON = Session(), Session(as_json=True)
LONG = "x" * 300
Told = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make stdout look like a terminal of some width."""

    def look(width: int) -> None:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")

    return look


def test_a_table_has_numbers_at_the_right_and_a_count(capsys: Told) -> None:
    show(PLAIN, Page(("name", "n"), (("ada", 1), ("bob", 1000), (None, None))))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "name      n",
        "───────────",
        "ada       1",
        "bob    1000",
        "NULL   NULL",
        "3 rows",
    ]


def test_text_that_looks_like_markup_is_only_text(capsys: Told) -> None:
    show(PLAIN, Page(("[bold]",), (("[red]stop[/red]",),)))
    assert "[red]stop[/red]" in capsys.readouterr().out


def test_long_text_is_whole_in_a_file_and_cut_on_a_terminal(capsys: Told, terminal: Callable[[int], None]) -> None:
    page = Page(("text", "n"), ((LONG, 123456),))
    show(PLAIN, page)
    assert LONG in capsys.readouterr().out
    terminal(60)
    show(PLAIN, page)
    out = capsys.readouterr().out
    assert LONG not in out
    assert "x…   123456" in out
    assert cell_len(out.splitlines()[2]) == 60


def test_many_columns_become_lines_on_a_terminal(capsys: Told, terminal: Callable[[int], None]) -> None:
    terminal(80)
    show(PLAIN, Page(tuple(f"c{i}" for i in range(40)), (tuple(range(40)),)))
    lines = [line.split() for line in Text.from_ansi(capsys.readouterr().out).plain.splitlines()]
    assert lines[0] == ["row", "1"]
    assert lines[40] == ["c39", "39"]


def test_a_page_that_was_cut_says_so(capsys: Told) -> None:
    page = Page(("n",), ((1,), (2,)), more=True)
    show(PLAIN, page)
    assert capsys.readouterr().out.splitlines()[-1] == "first 2 rows, there are more: --limit 0 shows all"
    show(JSON, page)
    told = capsys.readouterr()
    assert json.loads(told.out) == [{"n": 1}, {"n": 2}]
    assert told.err == "only the first 2 rows are printed; --limit 0 prints all\n"


def test_lists_are_brief_for_people_and_whole_as_json(capsys: Told) -> None:
    @dataclass(frozen=True)
    class Row:
        name: str
        secret: int | None

    rows = [Row("a", None)]
    show_rows(PLAIN, rows, lambda row: {"name": row.name, "shown": row.secret}, empty="none")
    assert capsys.readouterr().out.split() == ["name", "shown", "─" * 12, "a"]
    show_rows(JSON, rows, lambda row: {"name": row.name}, empty="none")
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "secret": None}]
    show_rows(PLAIN, [], vars, empty="none")
    assert capsys.readouterr().out == "none\n"
    show_rows(JSON, [], vars, empty="none")
    assert json.loads(capsys.readouterr().out) == []
