"""The command sql: text, a file, stdin, or a session."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from trickle.cli.arguments import DEFAULT_ROWS, STDIN, RowLimit, SqlFile, read_text
from trickle.cli.failures import StatementFailed
from trickle.cli.output import show, show_document
from trickle.cli.page import Shown
from trickle.cli.session import Session


def sql(
    session: Session,
    text: Annotated[str | None, typer.Argument(help="SQL to run; '-' reads stdin; without it, a session.")] = None,
    file: SqlFile = None,
    limit: RowLimit = DEFAULT_ROWS,
) -> None:
    """Run SQL, or open a session to type it in."""
    given = read_text(text, file)
    if given is None and not sys.stdin.isatty():
        given = read_text(STDIN, None)
    if given is None:
        _talk(session, limit)
    else:
        _run(session, given, limit)


def _run(session: Session, text: str, limit: int) -> None:
    from trickle.cli.running import run_text

    with session.connect() as t:
        results = run_text(t, text, limit)
        if session.as_json:
            _show_document(results)
        else:
            for result in results:
                show(session, result)


def _show_document(results: Iterable[Shown]) -> None:
    """One JSON document, also when a later statement fails."""
    done: list[Shown] = []
    try:
        done.extend(results)
    except StatementFailed:
        show_document(done, array=True)
        raise
    show_document(done)


def _talk(session: Session, limit: int) -> None:
    from trickle.cli.shell.loop import talk

    with session.connect() as t:
        talk(session, t, limit)
