"""Runs SQL text statement by statement, so that each one's result is seen."""

from __future__ import annotations

from collections.abc import Iterator

from trickle.api import PROCEDURES, Trickle
from trickle.cli.failures import StatementFailed
from trickle.cli.page import Shown
from trickle.cli.shown import shown
from trickle.cli.working import working
from trickle.errors import TrickleError
from trickle.sql import Statement, parse, split
from trickle.statements import run_statement


def run_text(t: Trickle, text: str, limit: int) -> Iterator[Shown]:
    """Each statement's result. All are parsed before the first one runs; the first that fails ends it."""
    with t.warehouse.catalog.read() as tx:
        depth = t.warehouse.settings(tx).max_parse_depth
    statements = parse(text, max_depth=depth)
    for number, (statement, piece) in enumerate(zip(statements, split(text), strict=True), 1):
        try:
            with working(t.warehouse.engine, _label(piece.text)):
                result = run_one(t, statement, limit)
        except TrickleError as error:
            if len(statements) == 1:
                raise
            raise StatementFailed(number, len(statements), piece.line, error) from error
        yield result


def run_one(t: Trickle, statement: Statement, limit: int = 0) -> Shown:
    """One statement's result."""
    return shown(run_statement(t.warehouse, statement, {name: getattr(t, name) for name in PROCEDURES}), limit)


def _label(text: str) -> str:
    """A statement on one short line."""
    words = " ".join(text[:200].split())
    return words if len(words) <= 60 else words[:59] + "…"
