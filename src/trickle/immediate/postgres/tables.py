"""What a stream table may read: ordinary tables, as PostgreSQL's catalog describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.names import identifier

_WITHOUT_EQUALITY = ["json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"]
_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated = 'v',
           coalesce(l.collisdeterministic, true), coalesce(e.typname, b.typname, t.typname) = ANY(%s)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_type b ON b.oid = t.typbasetype
    LEFT JOIN pg_type e ON e.oid = coalesce(b.typelem, t.typelem) AND coalesce(b.typcategory, t.typcategory) = 'A'
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# Of a table's unique keys without NULL the primary one, else the narrowest.
_KEY = """
    SELECT array(SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(n, place)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n
                 WHERE k.place <= i.indnkeyatts ORDER BY k.place)
    FROM pg_index i
    WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
      AND i.indexprs IS NULL
      AND NOT EXISTS (SELECT FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) AS k(n)
                      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n AND NOT a.attnotnull)
    ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid LIMIT 1
"""
# The first bit of an option says DESC, the second NULLS FIRST.
_INDEXES = """
    SELECT array(SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(n, place)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n
                 WHERE k.place <= i.indnkeyatts ORDER BY k.place),
           i.indoption::int2[]
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
    WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
"""
_RELATION = """
    SELECT n.nspname, c.relname, c.relkind::text, c.relforcerowsecurity,
           EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid OR h.inhparent = c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""
_KINDS = {
    "f": ("a foreign table", "no trigger sees what changes on its server"),
    "m": ("a materialized view", "it changes as a whole, and no trigger sees it"),
    "p": ("a partitioned table", "rows that are written to a partition, or come with one, pass its triggers by"),
    "S": ("a sequence", "it has no rows"),
}


@dataclass(frozen=True)
class Column:
    """A column; ``type`` is as ``format_type`` spells it. ``by_text``: its values are compared by their text alone."""

    name: str
    type: str
    not_null: bool
    by_text: bool = False


@dataclass(frozen=True)
class IndexTerm:
    """A column of an index, and how it is ordered."""

    column: str
    descending: bool
    nulls_first: bool

    @property
    def reversed(self) -> IndexTerm:
        """The same, read backwards."""
        return IndexTerm(self.column, not self.descending, not self.nulls_first)

    @property
    def sql(self) -> str:
        order = "DESC" if self.descending else "ASC"
        return f"{identifier(self.column)} {order} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Table:
    """A table. ``key`` are columns that tell its rows apart, none of them NULL; empty where there are none."""

    oid: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[IndexTerm, ...], ...]

    @property
    def indexed(self) -> frozenset[str]:
        """The columns that an index begins with."""
        return frozenset(index[0].column for index in self.indexes if index)

    @property
    def label(self) -> str:
        """What the table is called in trees."""
        return label(self.oid)

    @property
    def sql(self) -> str:
        """The table's name in SQL."""
        return identifier(self.schema, self.name)

    def by_text(self, column: str) -> bool:
        """Whether PostgreSQL cannot compare values of one of its columns, but their texts."""
        return next(each.by_text for each in self.columns if each.name == column)

    def type_of(self, column: str) -> str:
        """The type of one of its columns."""
        return next(each.type for each in self.columns if each.name == column)


def label(oid: int) -> str:
    """What a table is called in trees: names there are compared without case, and PostgreSQL's are not."""
    return f"t{oid}"


def is_view(connection: Connection[Any], oid: int) -> bool:
    """Whether a relation is a view, which is looked through."""
    row = connection.execute("SELECT relkind = 'v' FROM pg_class WHERE oid = %s", [oid]).fetchone()
    return bool(row and row[0])


def describe_table(connection: Connection[Any], oid: int) -> Table:
    """A table; refused with the reason where triggers cannot see all its changes."""
    found = connection.execute(_RELATION, [oid]).fetchone()
    assert found is not None
    schema, name, kind, forced, inherits = found
    spoken = f"{schema}.{name}"
    if kind in _KINDS:
        what, why = _KINDS[kind]
        raise UnsupportedQuery(f"{spoken} is {what}, which IMMEDIATE cannot follow", detail=why, hint=_ANOTHER_MODE)
    if schema in ("pg_catalog", "information_schema"):
        raise UnsupportedQuery(f"{spoken} belongs to PostgreSQL", detail="system tables have no triggers")
    if inherits:
        raise UnsupportedQuery(
            f"{spoken} inherits, or is inherited from",
            detail="its rows are those of several tables",
            hint=_ANOTHER_MODE,
        )
    if forced:
        raise UnsupportedQuery(
            f"{spoken} forces row-level security on its owner", detail="rows would be missing from the result"
        )
    return _described(connection, oid, schema, name)


_ANOTHER_MODE = "use another refresh mode: DIFFERENTIAL follows such sources"


def _described(connection: Connection[Any], oid: int, schema: str, name: str) -> Table:
    rows = connection.execute(_COLUMNS, [_WITHOUT_EQUALITY, oid]).fetchall()
    seen: set[str] = set()
    for column, _, _, virtual, deterministic, _ in rows:
        if column.lower() in seen:
            raise UnsupportedQuery(
                f"{schema}.{name} has columns that differ in case alone", detail=f"among them {column!r}"
            )
        seen.add(column.lower())
        if virtual:
            raise UnsupportedQuery(
                f"column {column!r} of {schema}.{name} is a virtual generated column",
                detail="triggers do not see its values",
            )
        if not deterministic:
            raise UnsupportedQuery(
                f"column {column!r} of {schema}.{name} has a collation under which different texts are equal",
                detail="such texts cannot be looked up by a hash",
            )
    key = connection.execute(_KEY, [oid]).fetchone()
    indexes = connection.execute(_INDEXES, [oid]).fetchall()
    return Table(
        oid=oid,
        schema=schema,
        name=name,
        columns=tuple(Column(column, kind, not_null, by_text) for column, kind, not_null, _, _, by_text in rows),
        key=tuple(key[0]) if key else (),
        indexes=tuple(
            tuple(
                IndexTerm(column, bool(option & 1), bool(option & 2))
                for column, option in zip(names, options, strict=False)
            )
            for names, options in indexes
        ),
    )
