"""What a relation looks like; Spark is asked for views only."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from trickle.algebra.names import INTERNAL_PREFIX, TableName
from trickle.catalog import databases, hosted, relations, streams
from trickle.catalog.records import Kind
from trickle.lake.snapshot import open_snapshot
from trickle.tables import system
from trickle.tables.hosted import columns_of, shown_home
from trickle.tables.reading import read_table
from trickle.tables.results import Listing
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class ColumnRow:
    """A column."""

    name: str
    type: str
    nullable: bool
    primary_key: bool
    partition: bool
    comment: str | None


def describe(warehouse: Warehouse, name: TableName) -> list[ColumnRow]:
    """The columns of a relation."""
    if name.is_system:
        return _rows(system.frame(warehouse, name).schema, (), ())
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        home = hosted.of(tx, [relation.id]).get(relation.id)
    if relation.kind is Kind.VIEW:
        return _rows(read_table(warehouse, name).schema, (), ())
    if home is not None:
        return _rows(columns_of(home), relation.key, ())
    snapshot = open_snapshot(warehouse.location_of(relation))
    return _rows(snapshot.schema, relation.key, snapshot.partition_by)


def describe_extended(warehouse: Warehouse, name: TableName) -> Listing:
    """The columns, and below them what the catalog and the log know about the relation."""
    columns = describe(warehouse, name)
    rows: list[tuple[object, ...]] = [(c.name, c.type, c.comment) for c in columns]
    if not name.is_system:
        rows += [("", "", None), *((f"# {key}", value, None) for key, value in _facts(warehouse, name).items())]
    return Listing(("name", "type", "comment"), tuple(rows))


def _facts(warehouse: Warehouse, name: TableName) -> dict[str, str]:
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        stream = streams.by_id(tx, relation.id) if relation.kind is Kind.STREAM_TABLE else None
        home = hosted.of(tx, [relation.id]).get(relation.id)
        database = None if home is None else databases.by_id(tx, home.database_id)
    facts = {"kind": relation.kind.value, "created": relation.created_at.isoformat(timespec="seconds")}
    if relation.query is not None:
        facts["query"] = relation.query
    if home is not None and database is not None:
        facts["lives in"] = shown_home(database, home)
    elif relation.location is not None:
        snapshot = open_snapshot(warehouse.location_of(relation))
        known = [file.rows for file in snapshot.files]
        facts["location"] = snapshot.location.uri
        facts["version"] = str(snapshot.version)
        facts["files"] = str(len(snapshot.files))
        facts["bytes"] = str(sum(file.size for file in snapshot.files))
        if None not in known:
            hidden = sum(file.deleted for file in snapshot.files)
            facts["rows"] = str(sum(rows or 0 for rows in known) - hidden)
        facts |= {f"property {key}": value for key, value in sorted(snapshot.properties.items())}
    if stream is not None:
        facts |= {"status": stream.status.value, "schedule": stream.schedule, "mode": stream.refresh_mode.value}
    return facts


def _rows(schema: StructType, key: tuple[str, ...], partition: tuple[str, ...]) -> list[ColumnRow]:
    keys = {k.lower() for k in key}
    return [
        ColumnRow(
            name=field.name,
            type=field.dataType.simpleString(),
            nullable=field.nullable,
            primary_key=field.name.lower() in keys,
            partition=field.name in partition,
            comment=(field.metadata or {}).get("comment"),
        )
        for field in schema.fields
        if not field.name.startswith(INTERNAL_PREFIX)
    ]
