"""Writes the pages that are made from the code; with ``--check`` only says whether they are fresh."""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

from trickle import errors, settings
from trickle.delta import support

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Made by scripts/generate_docs.py (make docs). -->"

ERRORS_HEAD = """
Every error has a code, a message, often a detail (what was found), and a hint (what to type next). In Python they are
classes below `trickle.errors.TrickleError`; the command line prints them and ends with the exit code. Catch the class
that names your remedy: a `TransientError` may be tried again, a `UserError` may not.
"""

SETTINGS_HEAD = """
Later wins: the default, the table `[trickle]` of `trickle.toml`, the environment, `SET trickle.<name> = <value>`, the
arguments of `trickle.connect`.
"""

SUPPORT_HEAD = """
How Trickle keeps what a query may hold. The tables of the examples, and how each row was found to be kept, are in
`src/trickle/delta/support.py`; `tests/delta/test_support.py` builds every example and compares. How it works is told in
[Kept by changes](differential.md), each rule on a page of [operators](operators/index.md).

| kept | means |
|---|---|
| by changes | a refresh costs what changed: changed rows, and the rows that they meet |
| by changes; a group is read again when it must be | some changes make a group be aggregated again from its rows |
| by changes; changed groups are read again | a group with a changed row is aggregated again, others are not read |
| by changes, which read the input whole | a change is computed and applied, but from all rows of the input |
| in full only | AUTO keeps it by full refreshes and says so at creation; DIFFERENTIAL refuses it |
| refused | no stream table can have it, whatever its refresh mode |

A construct marked with *settled* is made definite first, in every refresh mode, with a notice at creation
([canonical orders](differential.md#canonical-orders)).
"""


def errors_page() -> str:
    """The page of all errors, in the order of the source."""
    rows = [
        f"| `{kind.__name__}` | `{kind.code}` | {kind.exit_code} | {_depth(kind)}{inspect.getdoc(kind)} |"
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.TrickleError)
    ]
    order = list(vars(errors))
    rows.sort(key=lambda row: order.index(row.split("`")[1]))
    table = ["| class | code | exit | meaning |", "|---|---|---|---|", *rows]
    return "\n".join(["# Errors", "", NOTE, ERRORS_HEAD, *table, ""])


def _depth(kind: type[errors.TrickleError]) -> str:
    parent = kind.__base__
    return "" if parent in (Exception, errors.TrickleError) or parent is None else f"({parent.__name__}) "


def settings_page() -> str:
    """The page of all settings."""
    rows = [
        f"| `{name}` | {kind} | `{default}` | {settings.allowed_values(name)} |"
        f" `{settings.ENVIRONMENT_PREFIX}{name.upper()}` | {text} |"
        for name, kind, default, text in settings.describe()
    ]
    table = ["| setting | type | default | range | environment | meaning |", "|---|---|---|---|---|---|", *rows]
    return "\n".join(["# Settings", "", NOTE, SETTINGS_HEAD, *table, ""])


def support_page() -> str:
    """The page of SQL constructs and how each is kept."""
    lines = ["# SQL that is kept", "", NOTE, SUPPORT_HEAD]
    for section in support.SECTIONS:
        lines += [f"## {section.title}", "", "| construct | kept | rules | notes | example |", "|---|---|---|---|---|"]
        lines += [_support_row(row) for row in section.rows]
        lines.append("")
    return "\n".join(lines)


def _support_row(row: support.Row) -> str:
    rules = ", ".join(f"[{page}](operators/{page}.md)" for page in row.operators)
    notes = [*(["*settled*"] if row.settled else []), *([row.notes] if row.notes else [])]
    if row.error:
        notes.append(f"error: {row.error}")
    example = row.example if len(row.example) <= _LONGEST else row.example[:_LONGEST] + "..."
    cells = (row.construct, row.kept.value, rules, "; ".join(notes), f"`{example}`")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_LONGEST = 180

PAGES = {"docs/errors.md": errors_page, "docs/settings.md": settings_page, "docs/sql-support.md": support_page}


def stale() -> list[str]:
    """The pages that are not what the code says."""
    return [path for path, page in PAGES.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != page()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a page is not fresh")
    if parser.parse_args().check:
        if old := stale():
            sys.exit(f"not fresh: {', '.join(old)}; run: make docs")
        return
    for path, page in PAGES.items():
        (ROOT / path).write_text(page(), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
