"""What a stream table may read: ordinary tables, as PostgreSQL's catalog describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from trickle.errors import UnsupportedQuery
from trickle.postgres.names import identifier
from trickle.postgres.tables import SourceColumn, SourceTable, describe_oids

_WITHOUT_EQUALITY = frozenset(("json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"))
_DETERMINISTIC = """
    SELECT a.attname FROM pg_attribute a JOIN pg_collation l ON l.oid = a.attcollation AND NOT l.collisdeterministic
    WHERE a.attrelid = %s AND a.attnum > 0
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
    SELECT n.nspname || '.' || c.relname, c.relkind::text, n.nspname IN ('pg_catalog', 'information_schema'),
           c.relforcerowsecurity,
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
    spoken, kind, is_system, forced, inherits = found
    if kind in _KINDS:
        what, why = _KINDS[kind]
        raise UnsupportedQuery(f"{spoken} is {what}, which IMMEDIATE cannot follow", detail=why, hint=_ANOTHER_MODE)
    if is_system:
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
    return _described(connection, describe_oids(connection, [oid])[oid])


_ANOTHER_MODE = "use another refresh mode: DIFFERENTIAL follows such sources"


def _described(connection: Connection[Any], source: SourceTable) -> Table:
    loose = {row[0] for row in connection.execute(_DETERMINISTIC, [source.oid])}
    seen: set[str] = set()
    for column in source.columns:
        if column.name.lower() in seen:
            raise UnsupportedQuery(
                f"{source.shown} has columns that differ in case alone", detail=f"among them {column.name!r}"
            )
        seen.add(column.name.lower())
        if column.generated == "v":
            raise UnsupportedQuery(
                f"column {column.name!r} of {source.shown} is a virtual generated column",
                detail="triggers do not see its values",
            )
        if column.name in loose:
            raise UnsupportedQuery(
                f"column {column.name!r} of {source.shown} has a collation under which different texts are equal",
                detail="such texts cannot be looked up by a hash",
            )
    return Table(
        oid=source.oid,
        schema=source.schema,
        name=source.name,
        columns=tuple(Column(c.name, c.type_text, c.not_null, _is_by_text(c)) for c in source.columns),
        key=source.key,
        indexes=tuple(_index(*row) for row in connection.execute(_INDEXES, [source.oid])),
    )


def _is_by_text(column: SourceColumn) -> bool:
    kind = column.type.element or column.type
    return kind.builtin and kind.name in _WITHOUT_EQUALITY


def _index(names: list[str], options: list[int]) -> tuple[IndexTerm, ...]:
    terms = zip(names, options, strict=False)
    return tuple(IndexTerm(column, bool(option & 1), bool(option & 2)) for column, option in terms)
