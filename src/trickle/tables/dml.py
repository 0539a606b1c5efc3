"""INSERT, UPDATE, DELETE, TRUNCATE: on Spark, rewriting only the files that hold touched rows.

Every statement is turned into weighted rows, the deleted ones with their place in the table (file and row). They are
computed once, written as the commit's exact change rows, and the rewrite is made from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from trickle.algebra.names import quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.lake.few import Few, are_few
from trickle.lake.prepared import Prepared, note
from trickle.lake.rewrite import append, replace_rows
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot
from trickle.sql import Delete, Insert, SqlText, Truncate, Update
from trickle.tables.reading import Reading, ViewOf, resolve
from trickle.tables.results import Changed
from trickle.tables.rows import assigned, columns_of, struct_of, weighted_pairs
from trickle.tables.writing import append_rows, arrange, change, replace_contents
from trickle.warehouse import Warehouse


def insert(warehouse: Warehouse, statement: Insert) -> Changed:
    """INSERT INTO and INSERT OVERWRITE."""

    def rows(snapshot: Snapshot) -> DataFrame:
        return given(resolve_now(warehouse, statement.query), snapshot)

    def given(reading: Reading, snapshot: Snapshot) -> DataFrame:
        return arrange(reading.bind(statement.query), snapshot, statement.columns, statement.name)

    if statement.overwrite:
        return replace_contents(warehouse, statement.name, rows)
    reading = resolve_now(warehouse, statement.query)
    if statement.name in reading.relations:
        # What was computed from the table itself is computed anew when another writer came first.
        return change(warehouse, statement.name, lambda s: append(warehouse.engine, s, rows(s)))
    reading.bind(statement.query)  # from here on its load is known
    few = Few(warehouse.engine) if reading.load == "light" else None
    return append_rows(warehouse, statement.name, lambda s: given(reading, s), few=few)


def delete(warehouse: Warehouse, statement: Delete) -> Changed:
    """DELETE FROM."""
    where = statement.where
    if where is None:
        return truncate(warehouse, Truncate(statement.name))
    alias = statement.alias or statement.name.table

    def prepare(snapshot: Snapshot) -> Prepared:
        def render(view_of: ViewOf, names: Sequence[str]) -> str:
            return (
                f"SELECT {columns_of(snapshot.schema, alias)}, CAST(-1 AS BIGINT) AS {WEIGHT}, {FILE}, {ROW} "
                f"FROM {quote(names[0])} AS {quote(alias)} WHERE {where.bind_refs(view_of)}"
            )

        reading = resolve_now(warehouse, where)
        return replaced(warehouse, snapshot, reading, reading.run([where], render, [located(warehouse, snapshot)]))

    return change(warehouse, statement.name, prepare)


def update(warehouse: Warehouse, statement: Update) -> Changed:
    """UPDATE."""
    alias = statement.alias or statement.name.table
    texts = [a.value for a in statement.assignments] + ([statement.where] if statement.where else [])

    def prepare(snapshot: Snapshot) -> Prepared:
        values = assigned(statement.assignments, snapshot.schema, statement.name)

        def render(view_of: ViewOf, names: Sequence[str]) -> str:
            old = struct_of(snapshot.schema, {}, alias)
            new = struct_of(snapshot.schema, {c: v.bind_refs(view_of) for c, v in values.items()}, alias)
            where = f" WHERE {statement.where.bind_refs(view_of)}" if statement.where else ""
            target = f"{quote(names[0])} AS {quote(alias)}"
            return weighted_pairs(f"SELECT {old} AS o, {new} AS n, {FILE}, {ROW} FROM {target}{where}")

        reading = resolve_now(warehouse, *texts)
        return replaced(warehouse, snapshot, reading, reading.run(texts, render, [located(warehouse, snapshot)]))

    return change(warehouse, statement.name, prepare)


def truncate(warehouse: Warehouse, statement: Truncate) -> Changed:
    """TRUNCATE TABLE: the files leave, nothing is read."""
    return change(warehouse, statement.name, _remove_all)


def _remove_all(snapshot: Snapshot) -> Prepared:
    deleted = sum((file.rows or 0) - file.deleted for file in snapshot.files)
    return Prepared(
        snapshot.location,
        snapshot.version,
        removes=snapshot.files,
        info=note("truncate", 0, deleted),
        deleted=deleted,
    )


def resolve_now(warehouse: Warehouse, *texts: SqlText) -> Reading:
    """What the texts read, as it stands now."""
    with warehouse.catalog.read() as tx:
        return resolve(warehouse, tx, *texts)


def replaced(warehouse: Warehouse, snapshot: Snapshot, reading: Reading, rows: DataFrame) -> Prepared:
    """Located change rows, computed from a table and what else a statement reads, applied to the table."""
    engine = warehouse.engine
    few = Few(engine, reading.load) if are_few(snapshot.files, snapshot.schema) else None
    return replace_rows(engine, snapshot, rows, few=few)


def located(warehouse: Warehouse, snapshot: Snapshot) -> DataFrame:
    """A table's rows, each with its place."""
    return scan(warehouse.engine, snapshot, located=True)
