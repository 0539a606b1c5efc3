"""Column definitions, as CREATE TABLE and ALTER TABLE hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trickle.algebra.names import check_columns, nearest
from trickle.errors import UnknownColumn, UnsupportedStatement
from trickle.sql.reader import Reader
from trickle.sql.statements import ColumnDef
from trickle.sql.tokens import Kind

_AFTER_TYPE = (
    "AFTER",
    "CHECK",
    "COMMENT",
    "CONSTRAINT",
    "DEFAULT",
    "FIRST",
    "FOREIGN",
    "GENERATED",
    "MASK",
    "NOT",
    "NULL",
    "PRIMARY",
    "REFERENCES",
    "UNIQUE",
)
_CONSTRAINTS = (("FOREIGN", "KEY"), ("CHECK", "("), ("UNIQUE", "("))
_REFUSED = {
    "DEFAULT": "name the value in each INSERT",
    "GENERATED": "compute the column in a view or a stream table",
    "CHECK": "filter bad rows in a view or a stream table",
    "REFERENCES": "leave it out: it is not enforced",
    "UNIQUE": "declare a PRIMARY KEY",
    "MASK": "hide the column in a view",
    "FIRST": "new columns come last",
    "AFTER": "new columns come last",
}


@dataclass(frozen=True)
class Declared:
    """The columns and the primary key of a table."""

    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...]


def declared(reader: Reader) -> Declared:
    """Take ``(column type ..., PRIMARY KEY (...))``."""
    columns: list[ColumnDef] = []
    keys: list[tuple[str, ...]] = []

    def item() -> None:
        key = _table_constraint(reader)
        if key:
            keys.append(key)
            return
        column, is_key = column_def(reader)
        columns.append(column)
        if is_key:
            keys.append((column.name,))

    reader.listed(item)
    if len(keys) > 1:
        raise reader.error("a table has one primary key", hint="write PRIMARY KEY (a, b) for a key of several columns")
    names = [column.name for column in columns]
    check_columns(names)
    key = keys[0] if keys else ()
    if columns:
        key = matched(key, names)
        columns = [replace(column, nullable=column.nullable and column.name not in key) for column in columns]
    return Declared(tuple(columns), key)


def matched(wanted: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """The wanted columns as the table spells them."""
    check_columns(wanted)
    spelled = {name.lower(): name for name in names}
    for name in wanted:
        if name.lower() not in spelled:
            close = nearest(name, names)
            raise UnknownColumn(f"no column {name!r}", hint=f"did you mean {close!r}?" if close else None)
    return tuple(spelled[name.lower()] for name in wanted)


def column_def(reader: Reader) -> tuple[ColumnDef, bool]:
    """Take one column; says too whether it is declared the primary key."""
    name = reader.column()
    column = ColumnDef(name, type_text(reader))
    is_key = False
    while not (reader.done or reader.sees(",") or reader.sees(")")):
        if reader.accept("NOT", "NULL"):
            column = replace(column, nullable=False)
        elif reader.accept("COMMENT"):
            column = replace(column, comment=reader.string("the comment"))
        elif reader.accept("PRIMARY", "KEY"):
            is_key = True
            _key_options(reader)
        elif reader.accept("CONSTRAINT"):
            reader.identifier("the name of the constraint")
        elif not reader.accept("NULL"):
            raise _refused_column_option(reader, name)
    return column, is_key


def type_text(reader: Reader) -> str:
    """Take a type: the text up to what follows it."""
    start, before, depth = reader.offset, reader.at, 0
    while (word := reader.peek()) is not None:
        stops = any(map(word.is_keyword, (",", ")", *_AFTER_TYPE)))
        if not depth and stops:
            break
        if word.kind is Kind.SYMBOL:
            depth += word.text.count("<") + word.text.count("(") - word.text.count(">") - word.text.count(")")
        reader.at += 1
    if reader.at == before:
        raise reader.error("expected a type")
    if depth:
        raise reader.error("the type is not closed")
    return reader.source.text[start : reader.words[reader.at - 1].end]


def _table_constraint(reader: Reader) -> tuple[str, ...]:
    if reader.sees("CONSTRAINT") and _names_constraint(reader):
        reader.expect("CONSTRAINT")
        reader.identifier("the name of the constraint")
    for constraint in _CONSTRAINTS:
        if reader.sees(*constraint):
            name = " ".join(word for word in constraint if word != "(")
            raise UnsupportedStatement(f"{name} is not supported", hint="leave it out; PRIMARY KEY can be declared")
    if not reader.accept("PRIMARY", "KEY"):
        return ()
    key = reader.listed(reader.column)
    _key_options(reader)
    return key


def _names_constraint(reader: Reader) -> bool:
    """A column may be called constraint: what follows the name tells."""
    following = reader.peek(2)
    return following is not None and any(map(following.is_keyword, ("PRIMARY", "FOREIGN", "CHECK", "UNIQUE")))


def _key_options(reader: Reader) -> None:
    while reader.accept("NOT", "ENFORCED") or reader.accept("RELY") or reader.accept("NORELY"):
        pass


def _refused_column_option(reader: Reader, column: str) -> Exception:
    for keyword, hint in _REFUSED.items():
        if reader.sees(keyword):
            return UnsupportedStatement(f"{keyword} is not supported on the column {column!r}", hint=hint)
    return reader.error(f"unexpected text after the type of the column {column!r}")
