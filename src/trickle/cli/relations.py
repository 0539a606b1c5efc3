"""What is asked about a relation by name alone, whatever its kind. Needs sqlglot and Spark's modules."""

from __future__ import annotations

from trickle.api import Trickle
from trickle.catalog.records import Kind
from trickle.cli.page import Page, Shown
from trickle.cli.running import run_one
from trickle.sql import Describe, Drop, DropStreamTable
from trickle.sql.names import table_name

_FACT = "# "


def drop_any(t: Trickle, name: str, *, cascade: bool, if_exists: bool) -> Shown:
    """Drop a relation of any kind; a name that is not known is told as DROP TABLE tells it."""
    wanted = table_name(name)
    kinds = {table_name(row.name): Kind(row.kind) for row in t.tables()}
    match kinds.get(wanted):
        case Kind.STREAM_TABLE:
            return run_one(t, DropStreamTable(wanted, if_exists, cascade))
        case Kind.VIEW:
            return run_one(t, Drop("view", wanted, if_exists, cascade))
        case Kind.TABLE | Kind.ATTACHED | Kind.REPLICA | None:
            return run_one(t, Drop("table", wanted, if_exists, cascade))


def facts_of(t: Trickle, name: str) -> dict[str, object]:
    """What DESCRIBE EXTENDED says below the columns."""
    found = run_one(t, Describe(table_name(name), extended=True))
    assert isinstance(found, Page)
    return {str(row[0]).removeprefix(_FACT): row[1] for row in found.rows if str(row[0]).startswith(_FACT)}
