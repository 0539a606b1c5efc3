"""MERGE INTO: one join, the first clause that holds decides for each row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from trickle.algebra.names import quote
from trickle.algebra.weights import FILE, ROW
from trickle.errors import UnknownColumn
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.sql import Merge, MergeClause, SqlText
from trickle.tables.dml import located, replaced, resolve_now
from trickle.tables.reading import Reading, ViewOf
from trickle.tables.results import Changed
from trickle.tables.rows import assigned, null_row, struct_of, weighted_pairs
from trickle.tables.writing import change
from trickle.warehouse import Warehouse

_PRESENT = "__trickle_present"
_CLAUSE = "__trickle_clause"
_MATCHES = "__trickle_matches"


def merge(warehouse: Warehouse, statement: Merge) -> Changed:
    """Run a MERGE."""

    def prepare(snapshot: Snapshot) -> Prepared:
        return replaced(warehouse, snapshot, *_change_rows(warehouse, statement, snapshot))

    return change(warehouse, statement.name, prepare)


def _change_rows(warehouse: Warehouse, statement: Merge, snapshot: Snapshot) -> tuple[Reading, DataFrame]:
    target = statement.alias or statement.name.table
    source = statement.source_alias
    texts = _texts(statement)
    reading = resolve_now(warehouse, *texts)
    source_rows = reading.run(
        [statement.source], lambda view_of, _: f"SELECT * FROM {statement.source.bind_refs(view_of)}"
    )

    def render(view_of: ViewOf, names: Sequence[str]) -> str:
        tests = [_test(clause, target, source, view_of) for clause in statement.clauses]
        rows = [_new_row(clause, statement, snapshot, source_rows.columns, view_of) for clause in statement.clauses]
        chosen = "CASE " + " ".join(f"WHEN {test} THEN {n}" for n, test in enumerate(tests)) + " END"
        # Decided once, by the clause's number: a condition with rand() must not be asked twice.
        made = f"CASE {_CLAUSE} " + " ".join(f"WHEN {n} THEN {row}" for n, row in enumerate(rows)) + " END"
        matched = f"{quote(target)}.{FILE} IS NOT NULL AND {quote(source)}.{_PRESENT}"
        joined = (
            f"(SELECT *, true AS {_PRESENT} FROM {quote(names[1])}) AS {quote(source)} {_join(statement)} "
            f"{quote(names[0])} AS {quote(target)} ON {statement.on.bind_refs(view_of)}"
        )
        old = f"CASE WHEN {quote(target)}.{FILE} IS NOT NULL THEN {struct_of(snapshot.schema, {}, target)} END"
        pairs = (
            f"SELECT {chosen} AS {_CLAUSE}, {old} AS o, {made} AS n, {quote(target)}.{FILE}, {quote(target)}.{ROW}, "
            f"{matched} AS matched FROM {joined}"
        )
        return weighted_pairs(_once(pairs))

    return reading, reading.run(texts, render, [located(warehouse, snapshot), source_rows])


def _texts(statement: Merge) -> list[SqlText]:
    texts = [statement.source, statement.on]
    for clause in statement.clauses:
        texts += [clause.condition] if clause.condition else []
        texts += [assignment.value for assignment in clause.assignments]
    return texts


def _join(statement: Merge) -> str:
    """Only as much join as the clauses need."""
    kinds = {clause.when for clause in statement.clauses}
    match ("not_matched" in kinds, "not_matched_by_source" in kinds):
        case (True, True):
            return "FULL OUTER JOIN"
        case (True, False):
            return "LEFT JOIN"
        case (False, True):
            return "RIGHT JOIN"
        case _:
            return "JOIN"


def _test(clause: MergeClause, target: str, source: str, view_of: ViewOf) -> str:
    in_target = f"{quote(target)}.{FILE} IS NOT NULL"
    in_source = f"{quote(source)}.{_PRESENT} IS NOT NULL"
    match clause.when:
        case "matched":
            found = f"{in_target} AND {in_source}"
        case "not_matched":
            found = f"NOT ({in_target}) AND {in_source}"
        case "not_matched_by_source":
            found = f"{in_target} AND NOT ({in_source})"
    return found if clause.condition is None else f"{found} AND ({clause.condition.bind_refs(view_of)})"


def _new_row(
    clause: MergeClause, statement: Merge, snapshot: Snapshot, source_columns: Sequence[str], view_of: ViewOf
) -> str:
    if clause.action == "delete":
        return null_row(snapshot.schema)
    if clause.star:
        values = _star(statement, snapshot, source_columns)
    else:
        given = assigned(clause.assignments, snapshot.schema, statement.name)
        values = {column: value.bind_refs(view_of) for column, value in given.items()}
    keep = (statement.alias or statement.name.table) if clause.action == "update" else None
    return struct_of(snapshot.schema, values, keep)


def _star(statement: Merge, snapshot: Snapshot, source_columns: Sequence[str]) -> dict[str, str]:
    """UPDATE * and INSERT *: every column of the table from the source's column of that name."""
    by_key = {column.lower(): column for column in source_columns}
    missing = [name for name in snapshot.schema.names if name.lower() not in by_key]
    if missing:
        raise UnknownColumn(
            f"the source of the MERGE into {statement.name} has no column {missing[0]!r}",
            hint="name the columns instead of *",
        )
    alias = quote(statement.source_alias)
    return {name: f"{alias}.{quote(by_key[name.lower()])}" for name in snapshot.schema.names}


def _once(pairs: str) -> str:
    """Keep the rows that a clause chose; a row of the table that two rows of the source would change is an error."""
    message = "MERGE: a row of the target matches more than one row of the source"
    counted = (
        f"SELECT *, count(CASE WHEN matched THEN 1 END) OVER (PARTITION BY {FILE}, {ROW}) AS {_MATCHES} "
        f"FROM ({pairs}) WHERE {_CLAUSE} IS NOT NULL"
    )
    checked = f"CASE WHEN {FILE} IS NOT NULL AND {_MATCHES} > 1 THEN raise_error('{message}') ELSE o END"
    return f"SELECT {checked} AS o, n, {FILE}, {ROW} FROM ({counted})"
