"""Tables of a PostgreSQL database as its catalog describes them.

A table is known by its oid: its name may change. A partitioned table and a parent of inheriting tables are one source;
their ``parts`` are the tables that hold rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
from psycopg import sql

from trickle.errors import UnknownColumn, UnknownTable
from trickle.postgres.connect import Connection
from trickle.postgres.types import Mapped, PgType, mapped, read_texts


class Relkind(StrEnum):
    """What a relation of PostgreSQL is, by the letters of ``pg_class``."""

    TABLE = "r"
    PARTITIONED = "p"
    FOREIGN = "f"
    MATERIALIZED_VIEW = "m"
    VIEW = "v"


class Identity(StrEnum):
    """What the WAL says of an old row, by the letters of ``pg_class``."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"


@dataclass(frozen=True)
class SourceColumn:
    """A column. ``type_text`` is the declared type as PostgreSQL writes it; ``type`` looks through domains."""

    name: str
    attnum: int
    type_oid: int
    type_text: str
    typmod: int
    not_null: bool
    generated: str
    """Empty, ``s`` for stored, ``v`` for virtual."""
    type: PgType

    @property
    def mapped(self) -> Mapped:
        return mapped(self.type)

    def read(self, texts: pa.ChunkedArray, table: str) -> pa.Array:
        """PostgreSQL's texts as values of the lake."""
        whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        return read_texts(whole, self.type, self.name, table)


@dataclass(frozen=True)
class Part:
    """A table that holds rows of a source: the source itself, a leaf partition, an inheriting table."""

    oid: int
    schema: str
    name: str
    since: str = ""
    """The transactions that made it a part of the source: others, when it was detached and attached again."""

    @property
    def quoted(self) -> sql.Composed:
        return sql.SQL("{}.{}").format(sql.Identifier(self.schema), sql.Identifier(self.name))


@dataclass(frozen=True)
class SourceTable:
    """A table of the user's, with the columns that are used."""

    oid: int
    schema: str
    name: str
    kind: Relkind
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    """The primary key, else the columns of a unique index that are all NOT NULL; empty when there is none."""
    identity: Identity
    parts: tuple[Part, ...]
    identity_columns: tuple[str, ...] = ()
    """The columns of an old row that the WAL holds under DEFAULT and INDEX."""
    unlogged: bool = False

    @property
    def shown(self) -> str:
        """The name for people.

        >>> SourceTable(1, "public", "Or ders", Relkind.TABLE, (), (), Identity.DEFAULT, ()).shown
        'public."Or ders"'
        """
        return ".".join(p if p.isidentifier() and p == p.lower() else f'"{p}"' for p in (self.schema, self.name))

    @property
    def quoted(self) -> sql.Composed:
        return sql.SQL("{}.{}").format(sql.Identifier(self.schema), sql.Identifier(self.name))

    def column(self, name: str) -> SourceColumn:
        """A column by its exact name."""
        return next(column for column in self.columns if column.name == name)

    def with_columns(self, names: Iterable[str]) -> SourceTable:
        """The table with some of its columns, in its own order; a key that is not all among them is none."""
        wanted = set(names)
        for name in wanted - {column.name for column in self.columns}:
            raise UnknownColumn(
                f"{self.shown} has no column {name!r}",
                hint="columns: " + ", ".join(column.name for column in self.columns),
            )
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name in wanted),
            key=self.key if wanted.issuperset(self.key) else (),
        )


def describe(connection: Connection, schema: str, name: str) -> SourceTable:
    """A table by its exact name; UnknownTable when there is none."""
    found = _relations(connection, sql.SQL("n.nspname = {} AND c.relname = {}").format(schema, name))
    if not found:
        raise UnknownTable(
            f"the PostgreSQL database has no table {schema}.{name}",
            hint="names are exact here: write them as they are stored, mixed case included",
        )
    return found[0]


def describe_oids(connection: Connection, oids: Iterable[int]) -> dict[int, SourceTable]:
    """The tables with these oids that are still there, under whatever name."""
    wanted = sorted(set(oids))
    if not wanted:
        return {}
    found = _relations(connection, sql.SQL("c.oid = ANY ({}::oid[])").format(wanted))
    return {table.oid: table for table in found}


def listing(connection: Connection, schema: str) -> list[SourceTable]:
    """The tables of a schema, by name: plain and partitioned ones that are no partition themselves."""
    kinds = [Relkind.TABLE.value, Relkind.PARTITIONED.value]
    where = sql.SQL("n.nspname = {} AND c.relkind = ANY ({}) AND NOT c.relispartition").format(schema, kinds)
    return _relations(connection, where)


_RELATIONS = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relreplident::text, c.relpersistence::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f', 'm', 'v') AND """

_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attrelid, a.attnum, a.atttypid AS typid, a.atttypmod AS typmod
    FROM pg_attribute a WHERE a.attrelid = ANY (%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE b.typmod END
    FROM base b JOIN pg_type t ON t.oid = b.typid WHERE t.typtype = 'd'
), element AS (
    SELECT b.attrelid, b.attnum, t.typelem AS typid, b.typmod
    FROM base b JOIN pg_type t ON t.oid = b.typid JOIN pg_type et ON et.oid = t.typelem AND et.typarray = t.oid
    UNION ALL
    SELECT e.attrelid, e.attnum, t.typbasetype, CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE e.typmod END
    FROM element e JOIN pg_type t ON t.oid = e.typid WHERE t.typtype = 'd'
)
SELECT a.attrelid::bigint, a.attname, a.attnum, a.atttypid::bigint, format_type(a.atttypid, a.atttypmod), a.atttypmod,
    a.attnotnull, a.attgenerated::text,
    t.oid::bigint, t.typname, b.typmod, tn.nspname = 'pg_catalog',
    et.oid::bigint, et.typname, e.typmod, en.nspname = 'pg_catalog', et.typdelim::text
FROM pg_attribute a
JOIN base b ON b.attrelid = a.attrelid AND b.attnum = a.attnum
JOIN pg_type t ON t.oid = b.typid AND t.typtype <> 'd'
JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN (
    element e JOIN pg_type et ON et.oid = e.typid AND et.typtype <> 'd' JOIN pg_namespace en ON en.oid = et.typnamespace
) ON e.attrelid = a.attrelid AND e.attnum = a.attnum
ORDER BY a.attrelid, a.attnum"""

# The primary key first, then the narrowest and oldest of the indexes that could be one.
_KEYS = """
SELECT i.indrelid::bigint, i.indisprimary, i.indisreplident,
    ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
          WHERE k.place <= i.indnkeyatts ORDER BY k.place)
FROM pg_index i
WHERE i.indrelid = ANY (%(oids)s::oid[]) AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indpred IS NULL AND i.indexprs IS NULL
    AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                    WHERE k.place <= i.indnkeyatts AND NOT a.attnotnull)
ORDER BY i.indrelid, i.indisprimary DESC, i.indnkeyatts, i.indexrelid"""

_PARTS = """
WITH RECURSIVE part AS (
    SELECT c.oid AS root, c.oid, '' AS since FROM pg_class c WHERE c.oid = ANY (%(oids)s::oid[])
    UNION
    SELECT p.root, i.inhrelid, p.since || '/' || i.xmin FROM part p JOIN pg_inherits i ON i.inhparent = p.oid
)
SELECT p.root::bigint, c.oid::bigint, n.nspname, c.relname, string_agg(p.since, ' ' ORDER BY p.since)
FROM part p JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind <> 'p' GROUP BY p.root, c.oid, n.nspname, c.relname ORDER BY p.root, c.oid"""


def _relations(connection: Connection, where: sql.Composable) -> list[SourceTable]:
    rows = connection.execute(sql.SQL(_RELATIONS) + where + sql.SQL(" ORDER BY n.nspname, c.relname")).fetchall()
    oids = {"oids": [row[0] for row in rows]}
    if not rows:
        return []
    columns = _grouped(connection.execute(_COLUMNS, oids).fetchall())
    keys = _grouped(connection.execute(_KEYS, oids).fetchall())
    parts = _grouped(connection.execute(_PARTS, oids).fetchall())
    return [
        SourceTable(
            oid=oid,
            schema=schema,
            name=name,
            kind=Relkind(kind),
            columns=tuple(_column(row) for row in columns.get(oid, ())),
            key=_key(Relkind(kind), keys.get(oid, ()), len(parts.get(oid, ()))),
            identity=Identity(identity),
            parts=tuple(Part(*row) for row in parts.get(oid, ())),
            identity_columns=_identity_columns(Identity(identity), keys.get(oid, ())),
            unlogged=persistence == "u",
        )
        for oid, schema, name, kind, identity, persistence in rows
    ]


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[Sequence[Any]]]:
    found: dict[int, list[Sequence[Any]]] = {}
    for owner, *rest in rows:
        found.setdefault(owner, []).append(rest)
    return found


def _key(kind: Relkind, keys: Sequence[Sequence[Any]], parts: int) -> tuple[str, ...]:
    """The best of the keys. That of a table which others inherit from says nothing about their rows."""
    inherited = kind is Relkind.TABLE and parts > 1
    return tuple(keys[0][2]) if keys and not inherited else ()


def _identity_columns(identity: Identity, keys: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    for primary, chosen, columns in keys:
        if (identity is Identity.DEFAULT and primary) or (identity is Identity.INDEX and chosen):
            return tuple(columns)
    return ()


def _column(row: Sequence[Any]) -> SourceColumn:
    name, attnum, type_oid, type_text, typmod, not_null, generated, *rest = row
    oid, typname, base_typmod, builtin, element_oid, element_name, element_typmod, element_builtin, delimiter = rest
    element = None
    if element_oid is not None:
        element = PgType(element_oid, element_name, element_typmod, element_builtin)
    ours = builtin and (element is None or element.builtin)
    kind = PgType(oid, typname, base_typmod, ours, element, delimiter or ",")
    return SourceColumn(name, attnum, type_oid, type_text, typmod, not_null, generated, kind)
