"""CREATE, ALTER, DROP and REFRESH of stream tables, also spelled as materialized views."""

from __future__ import annotations

from trickle.errors import UnsupportedStatement
from trickle.sql.ddl import drop_behaviour, existing
from trickle.sql.literals import options
from trickle.sql.reader import Reader
from trickle.sql.statements import AlterStreamTable, CreateStreamTable, DropStreamTable, RefreshStreamTable

STREAM_OPTION = "trickle.stream"
_WHAT = "the name of a stream table"


def create_stream_table(reader: Reader, or_replace: bool) -> CreateStreamTable:
    """What follows ``CREATE STREAM TABLE``."""
    when = existing(reader, or_replace)
    name = reader.own_table(_WHAT)
    if reader.sees("("):
        raise UnsupportedStatement(
            "a stream table takes its columns from its query", hint="name the columns there: SELECT a AS b"
        )
    given = options(reader) if reader.accept("WITH") else {}
    reader.expect("AS")
    return CreateStreamTable(name, reader.query(), given, when.or_replace, when.if_not_exists)


def create_materialized_view(reader: Reader, or_replace: bool) -> CreateStreamTable:
    """What follows ``CREATE MATERIALIZED VIEW``: a stream table, if it says so."""
    made = create_stream_table(reader, or_replace)
    given = dict(made.options)
    if str(given.pop(STREAM_OPTION, None)).lower() != "true":
        raise UnsupportedStatement(
            "CREATE MATERIALIZED VIEW makes a stream table only when asked to",
            hint=f"write CREATE MATERIALIZED VIEW {made.name} WITH ({STREAM_OPTION} = true) AS ...",
        )
    return CreateStreamTable(made.name, made.query, given, made.or_replace, made.if_not_exists)


def alter_stream_table(reader: Reader) -> AlterStreamTable:
    """What follows ``ALTER STREAM TABLE``."""
    name = reader.own_table(_WHAT)
    if reader.accept("RESUME"):
        return AlterStreamTable(name, "resume")
    if reader.accept("SUSPEND"):
        return AlterStreamTable(name, "suspend")
    given = options(reader) if reader.accept("SET") else {}
    query = reader.query() if reader.accept("AS") else None
    if not given and query is None:
        raise reader.error("expected SET (...), AS, RESUME or SUSPEND")
    return AlterStreamTable(name, "set", given, query)


def drop_stream_table(reader: Reader) -> DropStreamTable:
    """What follows ``DROP STREAM TABLE``."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.own_table(_WHAT)
    return DropStreamTable(name, if_exists, drop_behaviour(reader))


def refresh_stream_table(reader: Reader) -> RefreshStreamTable:
    """What follows ``REFRESH STREAM TABLE``."""
    name = reader.own_table(_WHAT)
    return RefreshStreamTable(name, reader.accept("FORCE"))
