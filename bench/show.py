"""Figures as tables, on the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

HEADINGS = ("what", "runs", "median", "95 %", "facts")


def milliseconds(value: float) -> str:
    """A duration, with as many digits as mean something.

    >>> milliseconds(3.14159), milliseconds(1234.5), milliseconds(98765.0)
    ('3.1 ms', '1.23 s', '98.8 s')
    """
    if value < 1000:
        return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"
    return f"{value / 1000:.2f} s" if value < 10_000 else f"{value / 1000:.1f} s"


def cells(line: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """A line of the results as text."""
    facts = ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in line["facts"].items())
    return line["what"], str(line["runs"]), milliseconds(line["median_ms"]), milliseconds(line["p95_ms"]), facts


def terminal(title: str, lines: Iterable[Mapping[str, Any]]) -> Table:
    """The lines of one benchmark for a terminal."""
    table = Table(*HEADINGS, title=title, title_justify="left")
    for line in lines:
        table.add_row(*cells(line))
    return table


def markdown(lines: Iterable[Mapping[str, Any]]) -> str:
    """The lines of one benchmark for a page."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(line) for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def verdicts(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """PASS or FAIL for every line that has a limit."""
    return [
        f"{'PASS' if line['passed'] else 'FAIL'}: {line['what']}, median {milliseconds(line['median_ms'])}, "
        f"limit {milliseconds(line['limit_ms'])}"
        for line in lines
        if line["limit_ms"] is not None
    ]


def _fact(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else str(value)
