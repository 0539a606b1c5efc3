"""Text to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trickle.algebra.names import nearest
from trickle.errors import UnsupportedStatement
from trickle.sql import calls, ddl, dml, streams
from trickle.sql.alter import alter_table
from trickle.sql.depth import check_depth
from trickle.sql.merge import merge
from trickle.sql.query import DEFAULT_MAX_DEPTH
from trickle.sql.reader import Reader
from trickle.sql.statements import (
    AlterStreamTable,
    AlterTable,
    CreateStreamTable,
    CreateTable,
    CreateView,
    Drop,
    DropStreamTable,
    RefreshStreamTable,
    Select,
    Statement,
)
from trickle.sql.tokens import Kind, Source, Word, read_source

SUPPORTED = (
    "SELECT, INSERT, UPDATE, DELETE, MERGE INTO, TRUNCATE; CREATE, ALTER and DROP of TABLE, VIEW and STREAM TABLE; "
    "REFRESH STREAM TABLE; DESCRIBE, SHOW TABLES, EXPLAIN, SET, RESET, CALL"
)
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_STREAM_TABLE = (("STREAM", "TABLE"), ("MATERIALIZED", "VIEW"))
_HINTS = {
    ("CREATE", "SCHEMA"): "a schema comes into being with its first table: CREATE TABLE schema.table (...)",
    ("CREATE", "DATABASE"): "a schema comes into being with its first table: CREATE TABLE schema.table (...)",
    ("CREATE", "TEMPORARY"): "write CREATE VIEW, or use Spark's own createOrReplaceTempView",
    ("CREATE", "TEMP"): "write CREATE VIEW, or use Spark's own createOrReplaceTempView",
    ("CREATE", "GLOBAL"): "write CREATE VIEW, or use Spark's own createOrReplaceTempView",
    ("CREATE", "EXTERNAL"): "register a table that lies elsewhere: t.attach_table('name', 'path')",
    ("ALTER", "VIEW"): "write CREATE OR REPLACE VIEW ... AS ...",
    ("REFRESH", "TABLE"): "write REFRESH STREAM TABLE name",
    ("USE",): "name the schema: schema.table",
}


def parse(text: str, *, max_depth: int = DEFAULT_MAX_DEPTH) -> tuple[Statement, ...]:
    """The statements of a text, in order. Nothing is looked up: names and types may still be wrong.

    >>> [type(statement).__name__ for statement in parse("DROP TABLE a; TABLE b")]
    ['Drop', 'Select']
    """
    source = read_source(text)
    return tuple(_statement(source, words, max_depth) for words in source.statements())


def _statement(source: Source, words: Sequence[Word], max_depth: int) -> Statement:
    check_depth(source.tokens_between(words[0].start, words[-1].end), max_depth)
    reader = Reader(source, words, max_depth)
    if words[0].kind is not Kind.WORD and not reader.sees("("):
        raise reader.error("a statement is expected", hint=f"supported: {SUPPORTED}")
    read = _PARSERS.get(words[0].text.upper())
    if read is None:
        raise _unsupported(words[0].text.upper())
    statement = read(reader)
    reader.end()
    return statement


def _unsupported(*words: str) -> UnsupportedStatement:
    """The error for a statement that Trickle does not run, named by its first words."""
    close = nearest(words[0], _PARSERS)
    hint = _HINTS.get(words)
    if hint is None and close is not None and close != words[0]:
        hint = f"did you mean {close}?"
    name = " ".join(word[:40] for word in words)
    return UnsupportedStatement(f"{name} is not supported", hint=hint or f"supported: {SUPPORTED}")


def _select(reader: Reader) -> Select:
    if reader.sees("WITH"):
        _refuse_with_before_dml(reader)
    return Select(reader.query())


def _refuse_with_before_dml(reader: Reader) -> None:
    """Spark also takes ``WITH a AS (...) INSERT INTO t SELECT ...``."""
    ahead = Reader(reader.source, reader.words, reader.max_depth)
    ahead.skip_to(*_CHANGES)
    word, before = ahead.peek(), reader.words[ahead.at - 1]
    if word is not None and before.is_keyword(")") and not word.is_keyword(")"):
        raise UnsupportedStatement(
            f"WITH before {word.text.upper()} is not supported",
            hint="put it in the query: INSERT INTO t WITH a AS (...) SELECT ..., or MERGE INTO t USING (WITH ...)",
        )


def _create(reader: Reader) -> CreateTable | CreateView | CreateStreamTable:
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TABLE"):
        return ddl.create_table(reader, or_replace)
    if reader.accept("VIEW"):
        return ddl.create_view(reader, or_replace)
    if reader.accept("STREAM", "TABLE"):
        return streams.create_stream_table(reader, or_replace)
    if reader.accept("MATERIALIZED", "VIEW"):
        return streams.create_materialized_view(reader, or_replace)
    raise _unsupported_kind(reader)


def _alter(reader: Reader) -> AlterTable | AlterStreamTable:
    reader.expect("ALTER")
    if reader.accept("TABLE"):
        return alter_table(reader)
    if any(reader.accept(*kind) for kind in _STREAM_TABLE):
        return streams.alter_stream_table(reader)
    raise _unsupported_kind(reader)


def _drop(reader: Reader) -> Drop | DropStreamTable:
    reader.expect("DROP")
    if reader.accept("TABLE"):
        return ddl.drop(reader, "table")
    if reader.accept("VIEW"):
        return ddl.drop(reader, "view")
    if any(reader.accept(*kind) for kind in _STREAM_TABLE):
        return streams.drop_stream_table(reader)
    raise _unsupported_kind(reader)


def _refresh(reader: Reader) -> RefreshStreamTable:
    reader.expect("REFRESH")
    if reader.accept("STREAM", "TABLE"):
        return streams.refresh_stream_table(reader)
    if reader.accept("MATERIALIZED", "VIEW"):
        following = reader.peek(1)
        if following is not None and not following.is_keyword("."):
            reader.accept("CONCURRENTLY")
        return streams.refresh_stream_table(reader)
    raise _unsupported_kind(reader)


def _unsupported_kind(reader: Reader) -> Exception:
    """Named by the verb and what it is about; OR REPLACE does not matter."""
    if reader.done:
        return reader.error("the statement is not complete")
    return _unsupported(reader.words[0].text.upper(), reader.words[reader.at].text.upper())


def _after(keyword: str, read: Callable[[Reader], Statement]) -> Callable[[Reader], Statement]:
    def read_after(reader: Reader) -> Statement:
        reader.expect(keyword)
        return read(reader)

    return read_after


_PARSERS: Mapping[str, Callable[[Reader], Statement]] = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES", "FROM", "TABLE", "("), _select),
    "ALTER": _alter,
    "CALL": _after("CALL", calls.call),
    "CREATE": _create,
    "DELETE": _after("DELETE", dml.delete),
    "DESC": _after("DESC", calls.describe),
    "DESCRIBE": _after("DESCRIBE", calls.describe),
    "DROP": _drop,
    "EXPLAIN": _after("EXPLAIN", calls.explain),
    "INSERT": _after("INSERT", dml.insert),
    "MERGE": _after("MERGE", merge),
    "REFRESH": _refresh,
    "RESET": _after("RESET", calls.reset_option),
    "SET": _after("SET", calls.set_option),
    "SHOW": _after("SHOW", calls.show),
    "TRUNCATE": _after("TRUNCATE", ddl.truncate),
    "UPDATE": _after("UPDATE", dml.update),
}
