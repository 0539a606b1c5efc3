"""What the stories share: rows as plain values, refusals, refreshes that meet the oracle, a look into the warehouse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from trickle.algebra.weights import WEIGHT
from trickle.api import Trickle
from trickle.errors import TrickleError
from trickle.refresh.outcome import RefreshResult
from trickle.tables.results import Changed, Listing
from trickle.tables.views import StreamTableRow
from trickle.testing import check

Row = tuple[Any, ...]


def plain(frame: DataFrame) -> list[Row]:
    """The rows of a DataFrame as tuples, in an order of their own."""
    columns = [column.to_pylist() for column in frame.toArrow().columns]
    return sorted(zip(*columns, strict=True), key=order_of)


def order_of(row: Row) -> list[tuple[bool, Any]]:
    """A key that sorts any rows of one table, NULL first."""
    return [(value is not None, repr(value) if isinstance(value, dict | list) else value) for value in row]


def ask(t: Trickle, text: str) -> list[Row]:
    """The rows of a query."""
    found = t.sql(text)
    assert isinstance(found, DataFrame)
    return plain(found)


def contents(t: Trickle, name: str, *, version: int | None = None) -> list[Row]:
    """The rows of a table."""
    return plain(t.table(name, version=version))


def listed(t: Trickle, text: str) -> list[dict[str, object]]:
    """The rows of a statement that answers without Spark."""
    found = t.sql(text)
    assert isinstance(found, Listing)
    return list(found)


def changed(t: Trickle, text: str) -> tuple[int, int]:
    """How many rows a statement inserted and deleted."""
    found = t.sql(text)
    assert isinstance(found, Changed)
    return found.rows_inserted, found.rows_deleted


def refused(t: Trickle, text: str, kind: type[TrickleError], words: str, *, hint: str | None = None) -> None:
    """A text ends in one error that says these words, with this hint."""
    with pytest.raises(kind, match=re.escape(words)) as caught:
        t.sql(text)
    if hint is not None:
        assert hint in (caught.value.hint or "")


def refreshed(t: Trickle, *names: str) -> RefreshResult:
    """Refresh stream tables one after the other, each compared with its query; what the last refresh did."""
    for name in names:
        result = t.refresh_stream_table(name)
        check(t, name)
    return result


def state(t: Trickle, name: str) -> StreamTableRow:
    """How a stream table stands."""
    return next(row for row in t.status() if row.name == name)


def differences(t: Trickle, name: str, since: int) -> list[Row]:
    """What changed in a table after a version; the weight is the last column."""
    frame = t.changes(name, since)
    assert frame.columns[-1] == WEIGHT
    return plain(frame)


def folder(t: Trickle, name: str) -> Path:
    """Where a table lies."""
    place = next(row.location for row in t.tables() if row.name == name)
    assert place is not None
    return Path(place)


def version_of(t: Trickle, name: str) -> int:
    """The newest version of a table's log."""
    return DeltaTable(str(folder(t, name))).version()


def inventory(t: Trickle) -> tuple[list[str], list[object]]:
    """Every table's folder and files, and every relation: equal before and after means that nothing was done."""
    root = Path(t.warehouse.root.uri)
    tables = root.glob("*/*")
    files = (path for path in root.glob("*/**/*") if path.is_file())
    return sorted(str(path.relative_to(root)) for path in {*tables, *files}), [
        *t.tables(),
        *t.dependencies(),
        *t.settings(),
    ]
