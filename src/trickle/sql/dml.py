"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.algebra.names import TableName, check_columns
from trickle.errors import UnsupportedStatement
from trickle.sql.reader import Reader
from trickle.sql.refs import Relation
from trickle.sql.statements import Assignment, Delete, Insert, Update
from trickle.sql.text import SqlText
from trickle.sql.tokens import Kind

_QUERY_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


def insert(reader: Reader) -> Insert:
    """What follows ``INSERT``."""
    overwrite = reader.accept("OVERWRITE")
    if not overwrite:
        reader.expect("INTO")
    reader.refuse("INSERT", "DIRECTORY", hint="write the files with Spark")
    reader.refuse("INSERT", "LOCAL", "DIRECTORY", hint="write the files with Spark")
    if not reader.sees("TABLE", "."):
        reader.accept("TABLE")
    name = reader.own_table()
    reader.refuse("INSERT", "PARTITION", hint="name the partition columns in the query instead")
    reader.refuse("INSERT", "IF", "NOT", "EXISTS", hint="use MERGE INTO ... WHEN NOT MATCHED THEN INSERT *")
    columns = None
    if reader.sees("(") and not _holds_query(reader):
        columns = reader.listed(reader.column)
        check_columns(columns)
    reader.refuse("INSERT", "BY", "NAME", hint="list the columns: INSERT INTO t (a, b) SELECT a, b FROM ...")
    reader.refuse("INSERT", "REPLACE", "WHERE", hint="use DELETE FROM ... WHERE ..., then INSERT")
    reader.refuse("INSERT", "DEFAULT", "VALUES", hint="name the values: INSERT INTO t VALUES (...)")
    return Insert(name, reader.query(), columns, overwrite)


def _holds_query(reader: Reader) -> bool:
    """Whether the parenthesis holds a query: a column list goes on with a comma or a parenthesis."""
    first, second = reader.peek(1), reader.peek(2)
    if first is None or second is None or not any(map(first.is_keyword, _QUERY_STARTS)):
        return False
    return first.is_keyword("(") or not (second.is_keyword(",") or second.is_keyword(")"))


def update(reader: Reader) -> Update:
    """What follows ``UPDATE``."""
    name = reader.own_table()
    alias = alias_before(reader, "SET")
    reader.expect("SET")
    target = Relation(name, alias)
    assignments = set_list(reader, (target,), "WHERE", "FROM")
    reader.refuse("UPDATE", "FROM", hint="use MERGE INTO ... USING ... WHEN MATCHED THEN UPDATE SET ...")
    return Update(name, assignments, alias, _where(reader, target))


def delete(reader: Reader) -> Delete:
    """What follows ``DELETE``."""
    reader.expect("FROM")
    name = reader.own_table()
    reader.refuse("DELETE", "USING", hint="use MERGE INTO ... USING ... WHEN MATCHED THEN DELETE")
    alias = alias_before(reader, "WHERE", "USING")
    reader.refuse("DELETE", "USING", hint="use MERGE INTO ... USING ... WHEN MATCHED THEN DELETE")
    return Delete(name, alias, _where(reader, Relation(name, alias)))


def alias_before(reader: Reader, *stops: str) -> str | None:
    """Take an alias, if the next word is not the keyword that goes on with the statement."""
    if reader.accept("AS"):
        return reader.identifier("an alias")
    word = reader.peek()
    if word is None or word.kind not in (Kind.WORD, Kind.QUOTED) or any(map(word.is_keyword, stops)):
        return None
    return reader.identifier("an alias")


def set_list(reader: Reader, relations: Sequence[Relation], *stops: str) -> tuple[Assignment, ...]:
    """Take ``column = value, ...``, up to one of these keywords; the first relation is the target."""
    assignments = [_assignment(reader, relations, *stops)]
    while reader.accept(","):
        assignments.append(_assignment(reader, relations, *stops))
    check_columns(assignment.column for assignment in assignments)
    return tuple(assignments)


def _assignment(reader: Reader, relations: Sequence[Relation], *stops: str) -> Assignment:
    column = target_column(reader, relations[0])
    reader.expect("=")
    following = reader.peek(1)
    if reader.sees("DEFAULT") and (following is None or any(map(following.is_keyword, (",", *stops)))):
        raise UnsupportedStatement("DEFAULT is not supported as a value", hint="write NULL or the value itself")
    return Assignment(column, reader.expression(",", *stops, outside=relations))


def target_column(reader: Reader, target: Relation) -> str:
    """Take a column of the target, which may be named with the target's alias or name."""
    *qualifier, column = reader.dotted("the name of a column")
    if qualifier and not _is_target(tuple(qualifier), target):
        dotted = ".".join((*qualifier, column))
        raise UnsupportedStatement(
            f"only columns of the target can be assigned: {dotted}",
            hint="fields inside a column are changed by giving the whole column a new value",
        )
    return column


def _is_target(qualifier: tuple[str, ...], target: Relation) -> bool:
    if target.alias is not None:
        return [part.lower() for part in qualifier] == [target.alias.lower()]
    if len(qualifier) == 1:
        return qualifier[0].lower() == target.name.table_key
    return len(qualifier) == 2 and TableName.of(qualifier) == target.name


def _where(reader: Reader, target: Relation) -> SqlText | None:
    return reader.expression(outside=(target,)) if reader.accept("WHERE") else None
