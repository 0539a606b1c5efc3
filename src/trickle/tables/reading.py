"""Running the user's SQL text: every table reference is bound to one version of that table.

All versions are taken at once, before Spark sees the text: stream tables and replicas at the versions the catalog
pins, other tables at the newest version of their logs. Views are bound like subqueries, down to the tables they read.
Stream tables that live in PostgreSQL have no versions: they are read as they are when Spark comes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName, visible
from trickle.catalog import hosted, pins, relations, streams
from trickle.catalog.outside import Hosted
from trickle.catalog.records import Kind, Relation
from trickle.engine.failures import spark_errors
from trickle.engine.query import run_query
from trickle.engine.tuning import Load, is_light
from trickle.errors import UserError, WrongKind
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.sql import Query, SqlText, TableRef, query
from trickle.sql.recursive import starts_of
from trickle.tables import system
from trickle.tables.hosted import columns_of, frame_of
from trickle.warehouse import Warehouse

ViewOf = Callable[[TableRef], str]


@dataclass
class Reading:
    """The relations that one statement reads, resolved once.

    ``versions`` and ``overlays`` replace what the log says: versions for reading as of a frontier, overlays for
    tables whose next version is staged and not yet committed.
    """

    warehouse: Warehouse
    relations: dict[TableName, Relation] = field(default_factory=dict)
    views: dict[TableName, Query] = field(default_factory=dict)
    pins: dict[int, int | None] = field(default_factory=dict)
    versions: Mapping[int, int] = field(default_factory=dict)
    overlays: Mapping[int, Snapshot] = field(default_factory=dict)
    hosted: dict[int, Hosted] = field(default_factory=dict)
    """The stream tables that live in PostgreSQL."""
    _frames: dict[tuple[TableName, int | None], DataFrame] = field(default_factory=dict)
    _rows: list[int | None] = field(default_factory=list)

    def bind(self, text: SqlText) -> DataFrame:
        """The text as a DataFrame."""
        return self.run([text], lambda view_of, _: text.bind_refs(view_of))

    def described(self, text: SqlText, max_depth: int) -> DataFrame:
        """A DataFrame with the columns and types of the text; of a recursive one, not with its rows."""
        start = starts_of(text.text, max_depth)
        return self.bind(text if start == text.text else query(start, max_depth=max_depth))

    def run(
        self,
        texts: Sequence[SqlText],
        render: Callable[[ViewOf, Sequence[str]], str],
        frames: Sequence[DataFrame] = (),
    ) -> DataFrame:
        """Spark SQL made by ``render``.

        It is handed what each table reference of ``texts`` is called, and the names of the further ``frames``.
        """
        keys = list(dict.fromkeys((ref.name, ref.version) for text in texts for ref in text.refs))
        bound = [self.frame(name, version) for name, version in keys]

        def render_all(names: Sequence[str]) -> str:
            view_names = dict(zip(keys, names, strict=False))
            return render(lambda ref: view_names[ref.name, ref.version], names[len(keys) :])

        return run_query(self.warehouse.engine, [*bound, *frames], render_all)

    @property
    def load(self) -> Load:
        """How much there is to read, of what was bound so far."""
        return "light" if is_light(self._rows) else "any"

    def frame(self, name: TableName, version: int | None = None) -> DataFrame:
        """A relation's rows."""
        key = (name, version)
        if key not in self._frames:
            self._frames[key] = self._read(name, version)
        return self._frames[key]

    def _read(self, name: TableName, version: int | None) -> DataFrame:
        if name.is_system:
            return system.frame(self.warehouse, name)
        relation = self.relations[name]
        if relation.kind is Kind.VIEW:
            if version is not None:
                raise WrongKind(f"a view has no versions: {name}")
            return self.bind(self.views[name])
        if relation.id in self.hosted:
            if version is not None:
                raise WrongKind(f"{name} lives in PostgreSQL and has no versions")
            self._rows.append(None)
            return frame_of(self.warehouse, self.hosted[relation.id])
        snapshot = self.snapshot(relation, version)
        self._rows.extend(file.rows for file in snapshot.files)
        with spark_errors():
            return scan(self.warehouse.engine, snapshot, columns=visible(snapshot.schema.names))

    def snapshot(self, relation: Relation, version: int | None = None) -> Snapshot:
        """The version of a table that this statement reads."""
        if version is None and relation.id in self.overlays:
            return self.overlays[relation.id]
        if version is None:
            version = self.versions.get(relation.id)
        if version is None and relation.id in self.pins:
            version = self.pins[relation.id]
            if version is None:
                raise _unfilled(relation)
        return open_snapshot(self.warehouse.location_of(relation), version)

    def schema(self, relation: Relation) -> StructType:
        """The columns of a table, wherever it lives."""
        if relation.id in self.hosted:
            return columns_of(self.hosted[relation.id])
        return self.snapshot(relation).schema

    def for_columns(self) -> Reading:
        """The same, for asking which columns a text gives: a stream table that was never filled counts as empty."""
        empty = {relation: 0 for relation, version in self.pins.items() if version is None}
        return replace(self, versions={**empty, **self.versions}, _frames={})

    @property
    def tables(self) -> list[Relation]:
        """The tables with storage that are read, views looked through."""
        return [relation for relation in self.relations.values() if relation.kind is not Kind.VIEW]


@lru_cache(maxsize=1024)
def parsed(text: str, max_depth: int) -> Query:
    """A stored query. Refreshes ask for the same few again and again."""
    return query(text, max_depth=max_depth)


def resolve(
    warehouse: Warehouse,
    tx: Session,
    *texts: SqlText,
    versions: Mapping[int, int] | None = None,
    overlays: Mapping[int, Snapshot] | None = None,
    given: Mapping[TableName, DataFrame] | None = None,
) -> Reading:
    """Look up everything that the texts read, in one catalog transaction; ``given`` names stand for DataFrames."""
    reading = Reading(warehouse, versions=versions or {}, overlays=overlays or {})
    reading._frames.update({(name, None): frame for name, frame in (given or {}).items()})
    pending = [name for text in texts for name in sorted(text.tables)]
    while pending:
        name = pending.pop()
        if name in reading.relations or name.is_system or name in (given or {}):
            continue
        relation = relations.get(tx, name)
        reading.relations[name] = relation
        match relation.kind:
            case Kind.VIEW:
                assert relation.query is not None
                reading.views[name] = parsed(relation.query, warehouse.settings(tx).max_parse_depth)
                pending.extend(reading.views[name].tables)
            case Kind.STREAM_TABLE:
                reading.pins[relation.id] = streams.by_id(tx, relation.id).version
            case Kind.TABLE | Kind.ATTACHED | Kind.REPLICA:
                pass
    if reading.pins:
        reading.hosted.update(hosted.of(tx, reading.pins))
    others = [relation.id for relation in reading.tables if relation.id not in reading.pins]
    reading.pins.update({relation: pin.version for relation, pin in pins.of(tx, others).items()})
    return reading


def _unfilled(relation: Relation) -> UserError:
    if relation.kind is Kind.STREAM_TABLE:
        return UserError(
            f"stream table {relation.name} has not been filled yet", hint=f"REFRESH STREAM TABLE {relation.name}"
        )
    return UserError(
        f"{relation.name} is {relation.kind.words} and has not been loaded yet", hint="CALL trickle.ingest()"
    )


def read_table(warehouse: Warehouse, name: TableName, version: int | None = None) -> DataFrame:
    """A relation as a DataFrame, at the version readers see or at a given one."""
    text = query(f"SELECT * FROM {name.quoted}")
    with warehouse.catalog.read() as tx:
        reading = resolve(warehouse, tx, text)
    return reading.frame(name, version)
