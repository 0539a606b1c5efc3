"""CALL, SET, RESET, DESCRIBE, SHOW TABLES and EXPLAIN."""

from __future__ import annotations

from trickle.algebra.names import SYSTEM_SCHEMA
from trickle.errors import UnknownFunction, UnsupportedStatement
from trickle.sql.literals import literal
from trickle.sql.reader import Reader
from trickle.sql.statements import Call, Describe, Explain, SetOption, ShowTables
from trickle.sql.tokens import Kind

_EXPLAIN_MODES = ("EXTENDED", "FORMATTED", "COST", "CODEGEN", "ANALYZE", "LOGICAL")
_DESCRIBE_OTHERS = ("CATALOG", "DATABASE", "DETAIL", "FUNCTION", "HISTORY", "PROCEDURE", "QUERY", "SCHEMA")


def call(reader: Reader) -> Call:
    """What follows ``CALL``: procedures of Trickle, with literals as arguments."""
    parts = reader.dotted("the name of a procedure")
    if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() != SYSTEM_SCHEMA):
        raise UnknownFunction(f"no procedure {'.'.join(parts)}", hint=f"procedures are called as {SYSTEM_SCHEMA}.name")
    args: list[object] = []
    kwargs: dict[str, object] = {}
    reader.expect("(")
    while not reader.accept(")"):
        if args or kwargs:
            reader.expect(",")
        _argument(reader, args, kwargs)
    return Call(parts[-1].lower(), tuple(args), kwargs)


def _argument(reader: Reader, args: list[object], kwargs: dict[str, object]) -> None:
    following = reader.peek(1)
    if following is None or not following.is_keyword("=>"):
        if kwargs:
            raise reader.error("arguments without a name come before those with one")
        args.append(literal(reader))
        return
    name = reader.identifier("the name of an argument").lower()
    if name in kwargs:
        raise reader.error(f"the argument {name!r} is given twice")
    reader.expect("=>")
    kwargs[name] = literal(reader)


def set_option(reader: Reader) -> SetOption:
    """What follows ``SET``."""
    name = _option_name(reader, "SET")
    reader.expect("=")
    word = reader.peek()
    bare = word is not None and word.kind is Kind.WORD and word.text.lower() in ("on", "off", "yes", "no")
    if reader.sees("NULL"):
        raise reader.error("expected a value", hint=f"go back to the default: RESET {SYSTEM_SCHEMA}.{name}")
    return SetOption(name, reader.identifier("a value") if bare else literal(reader))


def reset_option(reader: Reader) -> SetOption:
    """What follows ``RESET``."""
    return SetOption(_option_name(reader, "RESET"), None)


def _option_name(reader: Reader, statement: str) -> str:
    parts = [part.lower() for part in reader.dotted("the name of a setting")]
    if len(parts) != 2 or parts[0] != SYSTEM_SCHEMA:
        raise UnsupportedStatement(
            f"{statement} {'.'.join(parts)} is not supported",
            hint=f"only settings of Trickle: {statement} {SYSTEM_SCHEMA}.max_parse_depth",
        )
    return parts[1]


def describe(reader: Reader) -> Describe:
    """What follows ``DESCRIBE``."""
    for other in _DESCRIBE_OTHERS:
        following = reader.peek(1)
        if following is not None and not following.is_keyword("."):
            reader.refuse("DESCRIBE", other, hint="write DESCRIBE table")
    if _is_followed_by_name(reader, "STREAM"):
        reader.expect("STREAM")
    if _is_followed_by_name(reader, "TABLE"):
        reader.expect("TABLE")
    extended = _is_followed_by_name(reader, "EXTENDED") or _is_followed_by_name(reader, "FORMATTED")
    if extended:
        reader.next("EXTENDED")
    return Describe(reader.table(), extended)


def _is_followed_by_name(reader: Reader, keyword: str) -> bool:
    """A table may be called extended: it is the keyword only if a name follows."""
    following = reader.peek(1)
    return reader.sees(keyword) and following is not None and following.kind in (Kind.WORD, Kind.QUOTED)


def show(reader: Reader) -> ShowTables:
    """What follows ``SHOW``."""
    if not reader.accept("TABLES"):
        word = reader.peek()
        what = f"SHOW {word.text.upper()}" if word else "SHOW"
        raise UnsupportedStatement(f"{what} is not supported", hint="write SHOW TABLES [IN schema] [LIKE 'pattern']")
    schema = reader.identifier("a schema") if reader.accept("FROM") or reader.accept("IN") else None
    like = reader.string("a pattern") if reader.accept("LIKE") or not reader.done else None
    return ShowTables(schema, like)


def explain(reader: Reader) -> Explain:
    """What follows ``EXPLAIN``."""
    for mode in _EXPLAIN_MODES:
        reader.refuse("EXPLAIN", mode, hint="write EXPLAIN SELECT ...")
    return Explain(reader.query())
