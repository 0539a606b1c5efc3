"""The public interface: a thin object over a warehouse."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from trickle.algebra.names import TableName
from trickle.api import gating, publishing, scheduling, sources
from trickle.api.gating import Gating
from trickle.api.publishing import Publishing
from trickle.api.scheduling import Scheduling
from trickle.api.sources import Sources
from trickle.api.views import VIEWS
from trickle.apply.unit import recover
from trickle.catalog.records import Relation
from trickle.catalog.store import Catalog
from trickle.catalog.urls import file_url
from trickle.clock import Clock, SystemClock
from trickle.engine import Engine
from trickle.errors import InvalidOption, WarehouseMissing
from trickle.history.failures import close_abandoned
from trickle.immediate import definition
from trickle.immediate.lake import Following
from trickle.immediate.postgres import frames
from trickle.lake.few import MOST_ROWS, Few
from trickle.lake.location import Location
from trickle.publish.following import follow
from trickle.refresh import explain
from trickle.refresh.definition import Definition, get, set_suspended
from trickle.refresh.explain import AuxiliaryColumn, Fact, Finding, Forecast
from trickle.refresh.outcome import RefreshResult
from trickle.settings import Settings, combine, from_environment, from_toml
from trickle.sql import names
from trickle.statements import Result, run
from trickle.tables import hosted, maintenance, system, views
from trickle.tables.ddl import attach
from trickle.tables.describe import ColumnRow, describe
from trickle.tables.reading import read_table
from trickle.tables.results import Changed
from trickle.tables.views import AlertRow, DependencyRow, HistoryRow, SettingRow, StreamTableRow, TableRow
from trickle.tables.writing import append_rows, match_names, replace_contents
from trickle.warehouse import Warehouse

CATALOG_FILE = "trickle.db"
SETTINGS_FILE = "trickle.toml"

PROCEDURES = (
    *gating.PROCEDURES,
    *publishing.PROCEDURES,
    *scheduling.PROCEDURES,
    *sources.PROCEDURES,
    "alerts",
    "alter_stream_table",
    "attach_table",
    "changes",
    "compact",
    "create_or_replace_stream_table",
    "create_stream_table",
    "create_stream_table_if_not_exists",
    "dependencies",
    "describe",
    "drop_stream_table",
    "explain_delta",
    "explain_query_rewrite",
    "explain_refresh_mode",
    "explain_st",
    "list_auxiliary_columns",
    "refresh_history",
    "refresh_stream_table",
    "resume_stream_table",
    "settings",
    "status",
    "suspend_stream_table",
    "tables",
    "vacuum",
    "validate_query",
)
"""The methods that SQL reaches as ``CALL trickle.<name>(...)``."""

system.add_views(VIEWS)
hosted.read_by(frames.frame)


def connect(
    warehouse: str | Path,
    *,
    catalog: str | None = None,
    spark: SparkSession | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    clock: Clock | None = None,
    create: bool = True,
) -> Trickle:
    """Open a warehouse, and make it where there is none (``create=False`` refuses that).

    ``catalog`` is a database URL; by default a SQLite file inside the warehouse. ``spark`` is a session, a master or a
    Spark Connect address; by default Spark starts on this machine when it is first needed.
    """
    root = Location.of(warehouse, storage_options)
    url = catalog or _catalog_file(root, create=create)
    toml = root.read(SETTINGS_FILE)
    base = combine(Settings(), from_toml(toml.decode()) if toml else {})
    opened = Warehouse(
        root=root,
        catalog=Catalog.open(url, create=create),
        engine=Engine.open(spark),
        clock=clock or SystemClock(),
        given_settings=combine(base, from_environment(os.environ)),
        connect_settings=dict(settings or {}),
        storage_options=dict(storage_options or {}),
        immediate=Following(),
    )
    combine(opened.given_settings, opened.connect_settings)
    recover(opened)
    close_abandoned(opened)
    return Trickle(opened)


def _catalog_file(root: Location, *, create: bool) -> str:
    if not root.is_local:
        raise InvalidOption(
            "a warehouse on an object store needs a catalog of its own",
            detail=root.uri,
            hint="connect(..., catalog='postgresql://...')",
        )
    folder = Path(root.uri)
    if create:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InvalidOption(f"no warehouse can be made at {root.uri!r}", detail=str(error)) from None
    elif not (folder / CATALOG_FILE).exists():
        raise WarehouseMissing(f"there is no warehouse at {root.uri}", hint=f"trickle init {root.uri}")
    return file_url(folder / CATALOG_FILE)


class Trickle(Gating, Publishing, Scheduling, Sources):
    """A warehouse with its stream tables."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    # SQL and tables

    def sql(self, text: str) -> Result:
        """Run one or several statements; the result is the last one's (a DataFrame for a query)."""
        return run(self.warehouse, text, {name: getattr(self, name) for name in PROCEDURES})

    def table(self, name: str, *, version: int | None = None) -> DataFrame:
        """A table, view or stream table as a DataFrame, at the version readers see or at a given one."""
        return read_table(self.warehouse, names.table_name(name), version)

    def write(
        self, name: str, rows: pa.Table | DataFrame, *, mode: Literal["append", "overwrite"] = "append"
    ) -> Changed:
        """Write rows to a base table, matched by column name."""
        table = names.table_name(name)
        frame = self.warehouse.engine.from_arrow(rows) if isinstance(rows, pa.Table) else rows
        match mode:
            case "append":
                light = isinstance(rows, pa.Table) and rows.num_rows <= MOST_ROWS
                few = Few(self.warehouse.engine) if light else None
                return append_rows(self.warehouse, table, lambda s: match_names(frame, s, table), few=few)
            case "overwrite":
                return replace_contents(self.warehouse, table, lambda s: match_names(frame, s, table))
            case other:
                raise InvalidOption(f"no write mode {other!r}", hint="modes: append, overwrite")

    def attach_table(self, name: str, place: str | Path, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Register a Delta table that others write, to be read under a name."""
        attach(self.warehouse, names.table_name(name), Location.of(place, storage_options))

    def describe(self, name: str) -> list[ColumnRow]:
        """The columns of a table, view or stream table."""
        return describe(self.warehouse, names.table_name(name))

    def changes(self, name: str, since: int, until: int | None = None) -> DataFrame:
        """What changed in a table after version ``since``: net rows with their weight."""
        return maintenance.changes(self.warehouse, names.table_name(name), since, until)

    # Stream tables

    def create_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        **options: object,
    ) -> StreamTableRow:
        """Make a stream table and fill it."""
        definition.create_stream_table(
            self.warehouse, self._definition(name, query, schedule, refresh_mode, options), initialize=initialize
        )
        return self._row(name)

    def create_stream_table_if_not_exists(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        **options: object,
    ) -> StreamTableRow:
        """Make a stream table unless one of that name is there."""
        wanted = names.table_name(name)
        if not any(names.table_name(row.name) == wanted for row in self.status()):
            return self.create_stream_table(
                name, query, schedule=schedule, refresh_mode=refresh_mode, initialize=initialize, **options
            )
        return self._row(name)

    def create_or_replace_stream_table(
        self,
        name: str,
        query: str,
        *,
        schedule: str = "calculated",
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        **options: object,
    ) -> StreamTableRow:
        """Make a stream table, or change the one that is there as little as possible."""
        definition.create_or_replace(
            self.warehouse, self._definition(name, query, schedule, refresh_mode, options), initialize=initialize
        )
        follow(self.warehouse, [names.table_name(name)])
        return self._row(name)

    def alter_stream_table(
        self, name: str, *, query: str | None = None, initialize: bool = True, **changes: object
    ) -> StreamTableRow:
        """Change the query or options of a stream table; an option of None is cleared."""
        definition.alter(self.warehouse, names.table_name(name), query, changes, initialize=initialize)
        follow(self.warehouse, [names.table_name(name)])
        return self._row(name)

    def drop_stream_table(self, name: str, *, cascade: bool = False) -> list[str]:
        """Remove a stream table, and with ``cascade`` what is built on it; the names that went."""
        return _names(definition.drop_stream_table(self.warehouse, names.table_name(name), cascade=cascade))

    def refresh_stream_table(self, name: str, *, force: bool = False) -> RefreshResult:
        """Bring a stream table to the present; ``force`` computes it even when no source has changed."""
        return definition.refresh(self.warehouse, names.table_name(name), force=force)

    def resume_stream_table(self, name: str) -> StreamTableRow:
        """Let a suspended stream table be refreshed again, with its errors forgotten."""
        set_suspended(self.warehouse, names.table_name(name), suspended=False)
        return self._row(name)

    def suspend_stream_table(self, name: str) -> StreamTableRow:
        """Refuse refreshes of a stream table until it is resumed."""
        set_suspended(self.warehouse, names.table_name(name), suspended=True)
        return self._row(name)

    # Introspection, without a Spark job

    def status(self) -> list[StreamTableRow]:
        """All stream tables and how they stand."""
        return views.stream_tables(self.warehouse)

    def tables(self) -> list[TableRow]:
        """All tables, views and stream tables."""
        return views.tables(self.warehouse)

    def dependencies(self) -> list[DependencyRow]:
        """Who reads what."""
        return views.dependencies(self.warehouse)

    def refresh_history(self, name: str | None = None, *, limit: int = 100) -> list[HistoryRow]:
        """Refreshes, newest first."""
        relation = None
        if name is not None:
            relation = get(self.warehouse, names.table_name(name)).relation.id
        return views.refresh_history(self.warehouse, relation, limit)

    def alerts(self, *, limit: int = 100) -> list[AlertRow]:
        """Alerts, newest first."""
        return views.alerts(self.warehouse, limit)

    def settings(self) -> list[SettingRow]:
        """All settings with the values in force."""
        return views.settings(self.warehouse)

    # Explanations, without a Spark job: Spark is asked for names, types and plans only

    def explain_st(self, name: str) -> list[Fact]:
        """How a stream table is kept: its state, its sources, its stages and their aggregates."""
        return explain.explain_st(self.warehouse, names.table_name(name))

    def explain_refresh_mode(self, name: str) -> Forecast:
        """What the next refresh would do, and why."""
        return explain.explain_refresh_mode(self.warehouse, names.table_name(name))

    def explain_delta(self, name: str, format: str = "tree") -> list[str]:
        """The plan of a stream table's change, line by line: as ``tree``, as ``sql``, or Spark's own (``spark``)."""
        return explain.explain_delta(self.warehouse, names.table_name(name), format)

    def explain_query_rewrite(self, query: str) -> list[str]:
        """What becomes of a query before it is kept, line by line: its tree, each rewrite, its stages."""
        return explain.explain_query_rewrite(self.warehouse, query)

    def validate_query(self, query: str) -> list[Finding]:
        """Whether a query could be kept by changes, and how each construct in it would be."""
        return explain.validate_query(self.warehouse, query)

    def list_auxiliary_columns(self, name: str) -> list[AuxiliaryColumn]:
        """What is stored beside a stream table's own columns, and what for."""
        return explain.list_auxiliary_columns(self.warehouse, names.table_name(name))

    # Maintenance

    def compact(self, name: str) -> maintenance.Compacted:
        """Write a table's small files together."""
        return maintenance.compact_table(self.warehouse, names.table_name(name))

    def vacuum(self, name: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Remove files that no reader, frontier or retention needs any more; the paths that went."""
        wanted = None if name is None else names.table_name(name)
        return maintenance.vacuum_tables(self.warehouse, wanted, dry_run=dry_run)

    def close(self) -> None:
        """Let go of Spark and the catalog."""
        self.warehouse.engine.close()
        self.warehouse.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _definition(
        self, name: str, query: str, schedule: str, refresh_mode: str, options: Mapping[str, object]
    ) -> Definition:
        given = {"schedule": schedule, "refresh_mode": refresh_mode, **options}
        return Definition.of(self.warehouse, names.table_name(name), query, given)

    def _row(self, name: str) -> StreamTableRow:
        wanted: TableName = names.table_name(name)
        return next(row for row in self.status() if names.table_name(row.name) == wanted)


def _names(gone: Iterable[Relation]) -> list[str]:
    return [str(relation.name) for relation in gone]
