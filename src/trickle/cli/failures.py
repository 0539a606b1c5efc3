"""Errors on their way to the terminal: what happened, why, and what to type next. Never a traceback by itself."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass

import typer

from trickle.errors import InternalError, Suspended, TrickleError

DEBUG_VARIABLE = "TRICKLE_DEBUG"
"""Environment variable that adds the traceback to errors."""

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ends, as shells count it."""


class StatementFailed(Exception):
    """One of several statements failed; those before it have run."""

    def __init__(self, number: int, of: int, line: int, cause: TrickleError) -> None:
        super().__init__(str(cause))
        self.number = number
        self.of = of
        self.line = line
        self.cause = cause


class RefreshesFailed(Exception):
    """Some refreshes of a tick failed; the others were carried out."""

    def __init__(self, failed: Mapping[str, str], of: int) -> None:
        super().__init__(", ".join(failed))
        self.failed = failed
        self.of = of


@dataclass(frozen=True)
class Problem:
    """An error as it is told."""

    code: str
    message: str
    detail: str | None = None
    hint: str | None = None
    exit_code: int = InternalError.exit_code
    statement: int | None = None
    expected: bool = True

    def as_json(self) -> dict[str, object]:
        """The object under ``error``."""
        told: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
        }
        return told if self.statement is None else {**told, "statement": self.statement}

    def as_text(self) -> str:
        """The lines that people read."""
        lines = [f"error: {self.message} [{self.code}]" if self.expected else f"internal error: {self.message}"]
        lines += [f"detail: {self.detail}"] if self.detail else []
        lines += [f"hint: {self.hint}"] if self.hint else []
        return "\n".join(lines)


def report(error: Exception, *, as_json: bool) -> int:
    """Tell an error on stderr; the exit code."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    problem = problem_of(error)
    text = json.dumps({"error": problem.as_json()}, ensure_ascii=False) if as_json else problem.as_text()
    sys.stderr.write(text + "\n")
    return problem.exit_code


def problem_of(error: Exception) -> Problem:
    """What is told about an error."""
    match error:
        case TrickleError():
            return Problem(error.code, error.message, error.detail, error.hint, error.exit_code)
        case StatementFailed(cause=cause):
            where = f"statement {error.number} of {error.of} (line {error.line}): {cause.message}"
            return Problem(cause.code, where, cause.detail, cause.hint, cause.exit_code, error.number)
        case RefreshesFailed(failed=failed):
            told = "; ".join(f"{name}: {why}" for name, why in failed.items())
            hint = f"trickle why {next(iter(failed))}"
            return Problem(
                "REFRESH_FAILED", f"refreshes failed: {len(failed)} of {error.of}", told, hint, Suspended.exit_code
            )
        case typer.TyperException():
            return _usage(error)
        case _:
            return Problem(
                InternalError.code,
                f"{type(error).__name__}: {_first_line(error)}",
                hint=f"run again with {DEBUG_VARIABLE}=1 to see where it happened",
                expected=False,
            )


def _usage(error: typer.TyperException) -> Problem:
    """A command line that makes no sense."""
    message = error.format_message().removesuffix(".")
    message, _, meant = message.partition(". Did you mean ")
    path = getattr(getattr(error, "ctx", None), "command_path", "trickle")
    hint = f"did you mean {meant}" if meant else f"{path} --help"
    return Problem("USAGE", message[:1].lower() + message[1:], hint=hint, exit_code=error.exit_code)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
