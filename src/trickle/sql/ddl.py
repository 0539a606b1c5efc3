"""CREATE TABLE, CREATE VIEW, DROP and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from trickle.algebra.names import check_columns
from trickle.errors import UnsupportedStatement
from trickle.sql.columns import declared, matched
from trickle.sql.literals import properties
from trickle.sql.reader import Reader
from trickle.sql.statements import CreateTable, CreateView, Drop, Truncate

_LEAVE_OUT = "leave it out: Trickle keeps its tables in the warehouse"
_REFUSED_CLAUSES = {
    ("LOCATION",): "register a table that lies elsewhere: t.attach_table('name', 'path')",
    ("CLUSTER", "BY"): "use PARTITIONED BY (column)",
    ("CLUSTERED", "BY"): "use PARTITIONED BY (column)",
    ("OPTIONS",): "use TBLPROPERTIES ('key' = 'value')",
    ("STORED",): "tables are Delta tables: leave it out",
    ("ROW", "FORMAT"): "tables are Delta tables: leave it out",
    ("LIKE",): "use CREATE TABLE ... AS SELECT * FROM ... WHERE false",
    ("SHALLOW", "CLONE"): "use CREATE TABLE ... AS SELECT * FROM ...",
    ("DEEP", "CLONE"): "use CREATE TABLE ... AS SELECT * FROM ...",
    ("DEFAULT", "COLLATION"): _LEAVE_OUT,
    ("WITH",): "use TBLPROPERTIES ('key' = 'value')",
}


@dataclass(frozen=True)
class Existing:
    """What a CREATE does when the name is taken."""

    or_replace: bool
    if_not_exists: bool


def existing(reader: Reader, or_replace: bool) -> Existing:
    """Take ``IF NOT EXISTS``, which contradicts ``OR REPLACE``."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise reader.error("OR REPLACE and IF NOT EXISTS contradict each other", hint="leave one of them out")
    return Existing(or_replace, if_not_exists)


def create_table(reader: Reader, or_replace: bool) -> CreateTable:
    """What follows ``CREATE TABLE``."""
    when = existing(reader, or_replace)
    table = CreateTable(reader.own_table(), or_replace=when.or_replace, if_not_exists=when.if_not_exists)
    if reader.sees("(") and not _begins_query(reader):
        columns = declared(reader)
        table = replace(table, columns=columns.columns, primary_key=columns.primary_key)
    while not (reader.done or reader.sees("AS") or _begins_query(reader)):
        table = _clause(reader, table)
    if not reader.done:
        reader.accept("AS")
        if table.columns:
            raise reader.error("a table made from a query takes its columns from it", hint="leave out the column list")
        table = replace(table, query=reader.query())
    if not table.columns and table.query is None:
        raise reader.error("a table needs columns or a query", hint="CREATE TABLE t (id BIGINT, name STRING)")
    if table.columns:
        spelled = matched(table.partitioned_by, [column.name for column in table.columns])
        table = replace(table, partitioned_by=spelled)
    return table


def _begins_query(reader: Reader) -> bool:
    starts = (("SELECT",), ("WITH",), ("VALUES",), ("FROM",), ("(", "SELECT"), ("(", "WITH"), ("(", "VALUES"))
    return any(reader.sees(*start) for start in starts) and not reader.sees("WITH", "(")


def _clause(reader: Reader, table: CreateTable) -> CreateTable:
    for clause, hint in _REFUSED_CLAUSES.items():
        reader.refuse("CREATE TABLE", *clause, hint=hint)
    if reader.accept("USING"):
        _check_format(reader)
        return table
    if reader.accept("PARTITIONED", "BY"):
        return replace(table, partitioned_by=reader.listed(lambda: _partition_column(reader)))
    if reader.accept("COMMENT"):
        return replace(table, comment=reader.string("the comment"))
    if reader.accept("TBLPROPERTIES"):
        return replace(table, properties=properties(reader))
    raise reader.error("unexpected text in CREATE TABLE")


def _check_format(reader: Reader) -> None:
    name = reader.identifier("the format of the table")
    if name.lower() != "delta":
        raise UnsupportedStatement(f"tables of the format {name!r} are not supported", hint="write USING delta")


def _partition_column(reader: Reader) -> str:
    name = reader.column()
    if reader.sees("("):
        raise UnsupportedStatement(
            f"the partition transform {name}(...) is not supported", hint="partition by a column of the table"
        )
    if not (reader.sees(",") or reader.sees(")")):
        raise UnsupportedStatement(
            "columns declared inside PARTITIONED BY are not supported",
            hint=f"declare {name!r} with the other columns and write PARTITIONED BY ({name})",
        )
    return name


def create_view(reader: Reader, or_replace: bool) -> CreateView:
    """What follows ``CREATE VIEW``."""
    when = existing(reader, or_replace)
    name = reader.own_table("the name of a view")
    columns = reader.listed(reader.column) if reader.sees("(") else ()
    check_columns(columns)
    comment = reader.string("the comment") if reader.accept("COMMENT") else None
    reader.refuse("CREATE VIEW", "TBLPROPERTIES", hint="leave it out")
    reader.refuse("CREATE VIEW", "WITH", hint="leave it out")
    reader.expect("AS")
    return CreateView(name, reader.query(), when.or_replace, when.if_not_exists, columns, comment)


def drop(reader: Reader, kind: Literal["table", "view"]) -> Drop:
    """What follows ``DROP TABLE`` and ``DROP VIEW``."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.own_table()
    cascade = drop_behaviour(reader)
    reader.refuse("DROP TABLE", "PURGE", hint="leave it out")
    return Drop(kind, name, if_exists, cascade)


def drop_behaviour(reader: Reader) -> bool:
    """Take CASCADE or RESTRICT."""
    cascade = reader.accept("CASCADE")
    if not cascade:
        reader.accept("RESTRICT")
    return cascade


def truncate(reader: Reader) -> Truncate:
    """What follows ``TRUNCATE``."""
    reader.accept("TABLE")
    name = reader.own_table()
    reader.refuse("TRUNCATE", "PARTITION", hint="use DELETE FROM ... WHERE ...")
    return Truncate(name)
