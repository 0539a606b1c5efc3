"""Reads statements from the terminal and shows their results, until the user leaves."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from sqlglot.tokenizer_core import TokenType

from trickle.api import Trickle
from trickle.cli.failures import StatementFailed, report
from trickle.cli.output import note, print_line, show
from trickle.cli.page import Shown
from trickle.cli.running import run_text
from trickle.cli.session import Session
from trickle.cli.shell.completer import SqlCompleter
from trickle.cli.shell.helpers import Leave, help_out
from trickle.cli.shell.history import history_file, open_history
from trickle.errors import ParseError, TrickleError, was_interrupted
from trickle.sql.tokens import read_source

PROMPT = "trickle> "
_CONTINUED = "      -> "


def talk(session: Session, t: Trickle, limit: int) -> None:
    """Talk until the user leaves. An error ends a statement, never the session."""
    note(rf"warehouse {t.warehouse.root.uri}; end a statement with ;  \? shows help, \q leaves")
    prompt = _prompt(t)
    with suppress(EOFError, Leave):
        while True:
            try:
                _answer(session, t, prompt.prompt(PROMPT), limit)
            except KeyboardInterrupt:
                continue
            except (TrickleError, StatementFailed) as error:
                if was_interrupted(error):
                    note("interrupted")
                else:
                    report(error, as_json=session.as_json)


def _answer(session: Session, t: Trickle, text: str, limit: int) -> None:
    if text.lstrip().startswith("\\"):
        show(session, help_out(t, text))
        return
    started = time.monotonic()
    results = run_text(t, text, limit)
    for result in results:
        _show_timed(session, result, time.monotonic() - started)
        started = time.monotonic()


def _show_timed(session: Session, result: Shown, seconds: float) -> None:
    show(session, result)
    if not session.as_json:
        print_line(f"{seconds:.2f} s")


def _prompt(t: Trickle) -> PromptSession[str]:
    return PromptSession(
        history=open_history(history_file(os.environ)),
        completer=SqlCompleter(lambda: _names(t)),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation=_CONTINUED,
        key_bindings=_bindings(),
    )


def _names(t: Trickle) -> list[str]:
    try:
        return [row.name for row in t.tables()]
    except TrickleError:
        return []


def _bindings() -> KeyBindings:
    """Enter sends a text that is complete and starts a new line in one that is not."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    return bindings


def is_complete(text: str) -> bool:
    r"""Whether a text can be run: nothing, a helper, or statements of which the last one is ended.

    >>> is_complete("SELECT ';'"), is_complete("SELECT 1; -- one"), is_complete(r"\dt")
    (False, True, True)
    """
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    try:
        tokens = read_source(text).tokens
    except ParseError:
        # A quote is open, or nothing will ever make it readable: an empty line shows the error.
        return text.endswith("\n")
    return not tokens or tokens[-1].token_type is TokenType.SEMICOLON
