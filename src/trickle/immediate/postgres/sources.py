"""Which database a query is about, and its tables as their replicas show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import databases, polled
from trickle.catalog.outside import Database, Hosted, Replica
from trickle.catalog.records import Kind
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.translating import Face, FaceColumn
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceColumn
from trickle.postgres.types import mapped
from trickle.replicas import shape
from trickle.tables.hosted import columns_of
from trickle.tables.reading import Reading

_SAME = frozenset(
    (
        *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bytea"),
        *("date", "timestamp", "timestamptz"),
    )
)
"""Types that mean the same here and there."""
_COLLATIONS = """
    SELECT (SELECT to_jsonb(d) FROM pg_database d WHERE d.datname = current_database()),
           NOT EXISTS (SELECT FROM pg_attribute a JOIN unnest(%s::text[], %s::text[]) AS t(space, name)
                       ON a.attrelid = to_regclass(format('%%I.%%I', t.space, t.name))
                       WHERE a.attnum > 0 AND a.attcollation NOT IN (0, 'pg_catalog."default"'::regcollation,
                             'pg_catalog."C"'::regcollation, 'pg_catalog."POSIX"'::regcollation))
"""
_BYTES = frozenset(("c", "posix", "c.utf-8", "c.utf8"))


@dataclass(frozen=True)
class Home:
    """A database, and the tables of it that a query reads."""

    database: Database
    faces: Mapping[TableName, Face]


def home_of(tx: Session, reading: Reading) -> Home | None:
    """The database whose tables are read; None where all tables are the lake's. Refused where there are several."""
    found: dict[TableName, tuple[int | None, Face | None]] = {}
    for relation in reading.tables:
        if relation.kind is Kind.REPLICA and polled.find(tx, relation.id) is None:
            replica = databases.replica_of(tx, relation.id)
            found[relation.name] = (replica.database_id, _face_of_replica(replica))
        elif relation.id in reading.hosted:
            home = reading.hosted[relation.id]
            found[relation.name] = (home.database_id, _face_of_hosted(home))
        else:
            found[relation.name] = (None, None)
    places = {place for place, _ in found.values()}
    if places <= {None}:
        return None
    if len(places) > 1:
        names = {place: str(name) for name, (place, _) in reversed(found.items())}
        one, other, *_ = names.values()
        raise UnsupportedQuery(
            f"{one} and {other} do not live in one database",
            detail="IMMEDIATE changes in the transaction that changes a source, and no transaction spans both",
            hint="use DIFFERENTIAL",
        )
    (place,) = places
    assert place is not None
    return Home(databases.by_id(tx, place), {name: face for name, (_, face) in found.items() if face is not None})


def orders_by_bytes(connection: Connection, faces: Mapping[TableName, Face]) -> bool:
    """Whether the database orders text by its bytes, as Spark does."""
    row = connection.execute(
        _COLLATIONS, [[face.schema for face in faces.values()], [face.table for face in faces.values()]]
    ).fetchone()
    assert row is not None
    facts, plain = row
    provider = facts.get("datlocprovider", "c")
    return plain and (provider == "b" or (provider == "c" and str(facts["datcollate"]).lower() in _BYTES))


def _face_of_replica(replica: Replica) -> Face:
    table = shape.from_json(replica.oid, replica.schema, replica.table, replica.shape)
    names = shape.lake_names(column.name for column in table.columns)
    columns = tuple(_column(name, column) for name, column in zip(names, table.columns, strict=True))
    return Face(replica.schema, replica.table, columns)


def _column(name: str, column: SourceColumn) -> FaceColumn:
    kind, spark = column.type, column.mapped.spark
    if kind.element is not None:
        same = kind.element.builtin and kind.element.name in _SAME and kind.element.name != "numeric"
        return FaceColumn(name, spark, column.name, refused=None if same else _other_text(column))
    if kind.builtin and kind.name == "bpchar":
        why = f"its type is {column.type_text}: PostgreSQL does not compare the blanks at its end, and Spark does"
        return FaceColumn(name, spark, column.name, refused=why)
    if kind.builtin and kind.name in _SAME:
        return FaceColumn(name, mapped(kind).spark, column.name)
    return FaceColumn(name, spark, column.name, cast="bigint" if spark == "bigint" else "text")


def _other_text(column: SourceColumn) -> str:
    return f"its type is {column.type_text}, whose elements are texts in the lake"


def _face_of_hosted(home: Hosted) -> Face:
    fields = columns_of(home).fields
    columns = tuple(FaceColumn(field.name, field.dataType.simpleString(), field.name) for field in fields)
    return Face(home.schema, home.table, columns)


def postgres_types(schema: StructType) -> list[tuple[str, str]]:
    """The columns of a result with the types that they have in PostgreSQL."""
    return [(field.name, _type_of(field.name, field.dataType.simpleString())) for field in schema.fields]


_TYPES = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}


def _type_of(name: str, spark: str) -> str:
    if spark in _TYPES:
        return _TYPES[spark]
    if spark.startswith("decimal("):
        return "numeric" + spark.removeprefix("decimal")
    if spark.startswith("array<") and spark[6:-1] in _TYPES:
        return _TYPES[spark[6:-1]] + "[]"
    raise UnsupportedQuery(
        f"column {name!r} has the type {spark}, which PostgreSQL has no like of",
        hint="leave it out, or use DIFFERENTIAL",
    )
