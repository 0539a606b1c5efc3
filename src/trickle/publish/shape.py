"""The shape of a published table: made, found fit, or brought to what the stream table has become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from trickle.errors import InvalidOption, SourceRefused, UnsupportedTable
from trickle.postgres.connect import Connection
from trickle.postgres.tables import Relkind, SourceTable, describe, describe_oids
from trickle.publish.types import Column


def find_target(connection: Connection, schema: str, name: str) -> SourceTable | None:
    """The table of this name, if there is one."""
    there = connection.execute(
        "SELECT c.oid::bigint FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = %s",
        (schema, name),
    ).fetchone()
    if there is None:
        return None
    found = describe_oids(connection, [there[0]]).get(there[0])
    if found is None or found.kind not in (Relkind.TABLE, Relkind.PARTITIONED):
        kind = "something else" if found is None else f"a {found.kind.name.lower().replace('_', ' ')}"
        raise InvalidOption(f"{schema}.{name} is not a table", detail=f"it is {kind}", hint="choose another name")
    return found


def create_target(
    connection: Connection, schema: str, name: str, columns: Sequence[Column], key: Sequence[str]
) -> SourceTable:
    """Make the table."""
    there = connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    if there is None:
        raise InvalidOption(
            f"the database has no schema {schema!r}", hint="make it with CREATE SCHEMA, or name another one"
        )
    parts: list[sql.Composable] = [_declared(column) for column in columns]
    if key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, key))))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(schema, name), sql.SQL(", ").join(parts)))
    return describe(connection, schema, name)


def _declared(column: Column) -> sql.Composed:
    # The type is one of this package's own words.
    return sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.type))


def check_rights(connection: Connection, table: SourceTable) -> None:
    """Refuse a table whose policies would hide rows from us, or whose columns compare what differs as equal."""
    found = connection.execute("SELECT pg_catalog.row_security_active(%s::oid)", (table.oid,)).fetchone()
    if found is not None and found[0]:
        raise SourceRefused(
            f"the policies of {table.shown} apply to the user that publishes to it",
            detail="rows that it cannot see could not be kept",
            hint="let the owner of the table publish, without FORCE ROW LEVEL SECURITY, or a user with BYPASSRLS",
        )
    loose = connection.execute(
        "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation"
        " WHERE a.attrelid = %s::oid AND NOT a.attisdropped AND NOT c.collisdeterministic",
        (table.oid,),
    ).fetchone()
    if loose is not None:
        raise UnsupportedTable(
            f"column {loose[0]!r} of {table.shown} has a collation that is not deterministic",
            detail="texts that differ would be taken for the same",
        )


@dataclass(frozen=True)
class Alterations:
    """What makes a published table fit its stream table again."""

    add: tuple[Column, ...] = ()
    drop: tuple[str, ...] = ()
    retype: tuple[Column, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.drop or self.retype)

    @property
    def words(self) -> str:
        said = [f"column {column.name!r} is missing" for column in self.add]
        said += [f"column {name!r} is not one of the stream table's" for name in self.drop]
        said += [f"column {column.name!r} is not {column.type}" for column in self.retype]
        return "; ".join(said)


def compare(table: SourceTable, columns: Sequence[Column], published: Sequence[str]) -> Alterations:
    """What differs between a table and the columns to publish; generated columns besides them are the user's.

    A column that was never ``published`` is refused: what it should hold for new rows is not known.
    """
    there = {column.name: column for column in table.columns}
    wanted = {column.name for column in columns}
    extra = [name for name, column in there.items() if name not in wanted and not column.generated]
    foreign = [name for name in extra if name not in published]
    if foreign and published:
        raise InvalidOption(
            f"{table.shown} has a column that is not the stream table's: {foreign[0]!r}",
            detail="what it should hold for new rows is not known",
            hint="make it a generated column, or keep it in a table of its own",
        )
    generated = [column.name for column in columns if column.name in there and there[column.name].generated]
    if generated:
        raise InvalidOption(f"{table.shown} computes a column that is to be published: {generated[0]!r}")
    return Alterations(
        add=tuple(column for column in columns if column.name not in there),
        drop=tuple(extra),
        retype=tuple(c for c in columns if c.name in there and not c.takes(there[c.name].type_text)),
    )


def alter(connection: Connection, table: SourceTable, found: Alterations) -> SourceTable:
    """Bring a published table to another shape; refuses what PostgreSQL refuses."""
    parts: list[sql.Composable] = [sql.SQL("ADD COLUMN {}").format(_declared(column)) for column in found.add]
    parts += [sql.SQL("DROP COLUMN {}").format(sql.Identifier(name)) for name in found.drop]
    for column in found.retype:
        kind = sql.SQL(column.type)
        name = sql.Identifier(column.name)
        parts.append(sql.SQL("ALTER COLUMN {} TYPE {} USING {}::{}").format(name, kind, name, kind))
    try:
        connection.execute(sql.SQL("ALTER TABLE {} {}").format(table.quoted, sql.SQL(", ").join(parts)))
    except psycopg.Error as error:
        if isinstance(error, psycopg.OperationalError | psycopg.errors.InsufficientPrivilege):
            raise
        raise InvalidOption(
            f"{table.shown} cannot be brought to the columns that the stream table has now",
            detail=f"{found.words}; PostgreSQL says: {str(error).splitlines()[0]}",
            hint="drop what is in the way and it is tried again, or publish under another name",
        ) from None
    return describe(connection, table.schema, table.name)
