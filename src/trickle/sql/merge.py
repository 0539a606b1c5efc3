"""MERGE INTO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trickle.algebra.names import INTERNAL_PREFIX, TableName, check_columns, quote
from trickle.errors import UnsupportedStatement
from trickle.sql.dml import alias_before, set_list, target_column
from trickle.sql.query import query_in, relation_in
from trickle.sql.reader import Reader
from trickle.sql.refs import Relation
from trickle.sql.statements import Assignment, Merge, MergeClause
from trickle.sql.text import SqlText

UNNAMED_SOURCE = INTERNAL_PREFIX + "source"


def merge(reader: Reader) -> Merge:
    """What follows ``MERGE``."""
    reader.refuse("MERGE", "WITH", "SCHEMA", "EVOLUTION", hint="add the columns first: ALTER TABLE ... ADD COLUMN ...")
    reader.expect("INTO")
    name = reader.own_table()
    target = Relation(name, alias_before(reader, "USING"))
    reader.expect("USING")
    source, relation = _source(reader)
    called = relation.alias or relation.name.table
    if called.lower() == (target.alias or name.table).lower():
        raise UnsupportedStatement(
            f"the target and the source of MERGE are both called {called!r}",
            hint="give one of them an alias: MERGE INTO t USING s AS source ...",
        )
    relations = (target, relation)
    reader.expect("ON")
    on = reader.expression("WHEN", outside=relations)
    return Merge(name, source, called, on, _clauses(reader, relations), target.alias)


def _source(reader: Reader) -> tuple[SqlText, Relation]:
    """The source without its alias, and what it is called."""
    if reader.sees("("):
        source, name, unaliased = _parenthesised(reader), TableName.of(["source"]), UNNAMED_SOURCE
    else:
        source = _table(reader)
        name, unaliased = source.refs[0].name, None
    alias = alias_before(reader, "ON") or unaliased
    if not reader.sees("("):
        return source, Relation(name, alias)
    columns = ", ".join(map(quote, reader.listed(reader.column)))
    before, after = "(SELECT * FROM ", f" AS {quote(alias or name.table)}({columns}))"
    return source.shifted(len(before), before + source.text + after), Relation(name, alias)


def _table(reader: Reader) -> SqlText:
    start = reader.offset
    reader.dotted("the source of MERGE")
    if reader.sees("("):
        raise UnsupportedStatement("a function as the source of MERGE is not supported", hint="USING (SELECT ...) AS s")
    reader.accept("FOR")
    if reader.accept("VERSION", "AS", "OF") or reader.accept("TIMESTAMP", "AS", "OF"):
        reader.next("a version")
    return relation_in(reader.source, start, reader.words[reader.at - 1].end, reader.max_depth)


def _parenthesised(reader: Reader) -> SqlText:
    start = reader.offset
    reader.expect("(")
    reader.skip_to(")")
    reader.expect(")")
    return query_in(reader.source, start, reader.words[reader.at - 1].end, reader.max_depth)


def _clauses(reader: Reader, relations: Sequence[Relation]) -> tuple[MergeClause, ...]:
    clauses: list[MergeClause] = []
    while not reader.done:
        clause = _clause(reader, relations)
        last = next((c for c in reversed(clauses) if c.when == clause.when), None)
        if last is not None and last.condition is None:
            raise reader.error("only the last WHEN of its kind may be without a condition")
        clauses.append(clause)
    if not clauses:
        raise reader.error("expected WHEN")
    return tuple(clauses)


def _clause(reader: Reader, relations: Sequence[Relation]) -> MergeClause:
    reader.expect("WHEN")
    when = _when(reader)
    condition = reader.expression("THEN", outside=relations) if reader.accept("AND") else None
    reader.expect("THEN")
    if when == "not_matched":
        reader.expect("INSERT")
        if reader.accept("*"):
            return MergeClause(when, "insert", condition, star=True)
        return MergeClause(when, "insert", condition, assignments=_insert_values(reader, relations))
    if reader.accept("DELETE"):
        return MergeClause(when, "delete", condition)
    reader.expect("UPDATE", "SET")
    if when == "matched" and reader.accept("*"):
        return MergeClause(when, "update", condition, star=True)
    return MergeClause(when, "update", condition, assignments=set_list(reader, relations, "WHEN"))


def _when(reader: Reader) -> Literal["matched", "not_matched", "not_matched_by_source"]:
    if reader.accept("MATCHED"):
        return "matched"
    reader.expect("NOT", "MATCHED")
    if reader.accept("BY", "SOURCE"):
        return "not_matched_by_source"
    reader.accept("BY", "TARGET")
    return "not_matched"


def _insert_values(reader: Reader, relations: Sequence[Relation]) -> tuple[Assignment, ...]:
    columns = reader.listed(lambda: target_column(reader, relations[0]))
    check_columns(columns)
    reader.expect("VALUES")
    values = reader.listed(lambda: reader.expression(",", outside=relations))
    if len(columns) != len(values):
        raise reader.error(f"{len(columns)} columns and {len(values)} values in INSERT")
    return tuple(map(Assignment, columns, values))
