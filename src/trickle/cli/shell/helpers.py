r"""What begins with a backslash: short ways to look around."""

from __future__ import annotations

from trickle.api import Trickle
from trickle.cli.page import Page, Record, Shown
from trickle.cli.running import run_one
from trickle.errors import InvalidOption
from trickle.sql import Describe, ShowTables
from trickle.sql.names import table_name

HELP = r"""Type SQL and end it with a semicolon; it may take several lines.
  \dt        tables, views and stream tables
  \d         the same
  \d NAME    columns of one, and what is known about it
  \?         this help
  \q         leave (also Ctrl-D)"""


class Leave(Exception):
    r"""``\q``."""


def help_out(t: Trickle, line: str) -> Shown:
    """What a helper answers."""
    name, _, rest = line.strip().rstrip(";").partition(" ")
    match name, rest.strip():
        case (("\\q" | "\\quit"), ""):
            raise Leave
        case (("\\?" | "\\h" | "\\help"), ""):
            return Record({}, HELP)
        case (("\\d" | "\\dt"), ""):
            found = run_one(t, ShowTables())
            return found if not isinstance(found, Page) or found.rows else Record({}, "no tables yet")
        case "\\d", relation:
            return run_one(t, Describe(table_name(relation), extended=True))
        case _:
            raise InvalidOption(f"no helper {line.strip()[:40]}", hint=r"\? lists them")
