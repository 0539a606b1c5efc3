"""System views: the catalog's rows under ``trickle.*``, each the same as the Python function of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeAlias, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame

from trickle.algebra.names import TableName, nearest
from trickle.errors import UnknownTable
from trickle.tables import views
from trickle.tables.results import Listing
from trickle.warehouse import Warehouse

_ARROW = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", "UTC"),
}

View: TypeAlias = tuple[type[Any], Callable[[Warehouse], Sequence[Any]]]
"""What a system view is made of: the type of its rows, and what gives them."""

SYSTEM_VIEWS: dict[str, View] = {
    "alerts": (views.AlertRow, views.alerts),
    "dependencies": (views.DependencyRow, views.dependencies),
    "refresh_history": (views.HistoryRow, views.refresh_history),
    "settings": (views.SettingRow, views.settings),
    "stream_tables": (views.StreamTableRow, views.stream_tables),
    "tables": (views.TableRow, views.tables),
}


def add_views(added: Mapping[str, View]) -> None:
    """Add system views whose rows come from a layer above this one."""
    SYSTEM_VIEWS.update(added)


def frame(warehouse: Warehouse, name: TableName) -> DataFrame:
    """A system view as a DataFrame."""
    if name.table_key not in SYSTEM_VIEWS:
        close = nearest(name.table, SYSTEM_VIEWS)
        raise UnknownTable(
            f"no system view {name}",
            hint=f"did you mean trickle.{close}?" if close else "system views: " + ", ".join(sorted(SYSTEM_VIEWS)),
        )
    row_type, rows = SYSTEM_VIEWS[name.table_key]
    schema = pa.schema([(column, _ARROW[kind]) for column, kind in _columns(row_type).items()])
    records = [{column: getattr(row, column) for column in schema.names} for row in rows(warehouse)]
    return warehouse.engine.from_arrow(pa.Table.from_pylist(records, schema=schema))


def listing(rows: Sequence[Any], row_type: type[Any]) -> Listing:
    """Rows of one type as a listing."""
    columns = tuple(f.name for f in fields(row_type))
    return Listing(columns, tuple(tuple(getattr(row, c) for c in columns) for row in rows))


def _columns(row_type: type[Any]) -> dict[str, type]:
    hints = get_type_hints(row_type)
    return {f.name: _plain(hints[f.name]) for f in fields(row_type)}


def _plain(hint: Any) -> type:
    """The type without its None."""
    options = [a for a in getattr(hint, "__args__", (hint,)) if a is not type(None)]
    found: type = options[0]
    return found
