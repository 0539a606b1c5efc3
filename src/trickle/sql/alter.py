"""ALTER TABLE."""

from __future__ import annotations

from trickle.algebra.names import TableName, check_columns
from trickle.errors import UnsupportedStatement
from trickle.sql.columns import column_def, declared, type_text
from trickle.sql.literals import properties
from trickle.sql.reader import Reader, check_own
from trickle.sql.statements import (
    AddColumns,
    AlterAction,
    AlterColumnType,
    AlterTable,
    ColumnDef,
    DropColumns,
    RenameColumn,
    RenameTable,
    SetProperties,
)

_SUPPORTED = "ADD COLUMN, DROP COLUMN, RENAME COLUMN, RENAME TO, ALTER COLUMN ... TYPE, SET TBLPROPERTIES"


def alter_table(reader: Reader) -> AlterTable:
    """What follows ``ALTER TABLE``."""
    name = reader.own_table()
    return AlterTable(name, _action(reader, name))


def _action(reader: Reader, table: TableName) -> AlterAction:
    if reader.accept("ADD", "COLUMN") or reader.accept("ADD", "COLUMNS"):
        return _add_columns(reader)
    if reader.accept("DROP", "COLUMN") or reader.accept("DROP", "COLUMNS"):
        if_exists = reader.accept("IF", "EXISTS")
        names = reader.listed(reader.column) if reader.sees("(") else _several(reader)
        return DropColumns(names, if_exists)
    if reader.accept("RENAME", "COLUMN"):
        old = reader.column()
        reader.expect("TO")
        new = reader.column()
        check_columns([new])
        return RenameColumn(old, new)
    if reader.accept("RENAME", "TO"):
        return RenameTable(_new_name(reader, table))
    if reader.accept("SET", "TBLPROPERTIES"):
        return SetProperties(properties(reader))
    if reader.accept("ALTER", "COLUMN") or reader.accept("ALTER") or reader.accept("CHANGE", "COLUMN"):
        return _alter_column(reader)
    raise _unknown_action(reader)


def _add_columns(reader: Reader) -> AddColumns:
    if reader.sees("("):
        found = declared(reader)
        if found.primary_key:
            raise UnsupportedStatement("PRIMARY KEY is not supported in ALTER TABLE", hint="declare it in CREATE TABLE")
        return AddColumns(found.columns)
    columns = [_added(reader)]
    while reader.accept(","):
        columns.append(_added(reader))
    check_columns(column.name for column in columns)
    return AddColumns(tuple(columns))


def _added(reader: Reader) -> ColumnDef:
    column, is_key = column_def(reader)
    if is_key:
        raise UnsupportedStatement("PRIMARY KEY is not supported in ALTER TABLE", hint="declare it in CREATE TABLE")
    return column


def _several(reader: Reader) -> tuple[str, ...]:
    names = [reader.column()]
    while reader.accept(","):
        names.append(reader.column())
    return tuple(names)


def _new_name(reader: Reader, table: TableName) -> TableName:
    """A new name without a schema stays in the table's schema."""
    parts = reader.dotted("the new name")
    return check_own(TableName(table.schema, parts[0]) if len(parts) == 1 else TableName.of(parts))


def _alter_column(reader: Reader) -> AlterColumnType:
    column = reader.column()
    if not reader.accept("TYPE") and not reader.accept("SET", "DATA", "TYPE"):
        raise UnsupportedStatement(
            f"this change of the column {column!r} is not supported",
            hint=f"a column's type can be widened: ALTER TABLE ... ALTER COLUMN {column} TYPE BIGINT",
        )
    return AlterColumnType(column, type_text(reader))


def _unknown_action(reader: Reader) -> Exception:
    words = [word.text.upper() for word in (reader.peek(), reader.peek(1)) if word is not None]
    if not words:
        return reader.error("expected what to alter", hint=f"supported: {_SUPPORTED}")
    return UnsupportedStatement(f"ALTER TABLE ... {' '.join(words)} is not supported", hint=f"supported: {_SUPPORTED}")
