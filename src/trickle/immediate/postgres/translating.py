"""A query of Trickle's (Spark SQL) as PostgreSQL's (pure).

A stream table may move between the lake and PostgreSQL, and has to hold the same rows in both. So only what is known to
mean the same is translated, and everything else is refused by name:

    tables       stand for queries over the columns that are used, under the names and with the types of the replicas
    names        are compared without case: all are lower case here
    numbers      quotients and means get the digits that Spark gives them (``decimals.py``)
    text         is compared by equality; for an order PostgreSQL has to compare bytes, as Spark does
    result       its columns are cast to the types that Spark says, under the names that it says

What is implicit (types of subqueries, which table a column is of) is made explicit by sqlglot first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from trickle.algebra.names import TableName
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.meaning import Meaning
from trickle.operators import Expr
from trickle.postgres.names import identifier
from trickle.sql.depth import room_to_recurse

_SPARK = "spark"


@dataclass(frozen=True)
class FaceColumn:
    """A column of a replica: its name and type there, and what it is in PostgreSQL."""

    name: str
    spark_type: str
    own: str
    cast: str | None = None
    refused: str | None = None
    """Why it cannot be used."""


@dataclass(frozen=True)
class Face:
    """A table of PostgreSQL as its replica shows it."""

    schema: str
    table: str
    columns: tuple[FaceColumn, ...]


def to_postgres(
    text: str,
    faces: Mapping[TableName, Face],
    views: Mapping[TableName, str],
    result: Sequence[tuple[str, str]],
    *,
    by_bytes: bool,
) -> str:
    """The text of a query for PostgreSQL. ``result`` are its columns, with types as PostgreSQL spells them.

    ``by_bytes``: whether PostgreSQL orders text by its bytes.
    """
    with room_to_recurse():
        labels = {name: f"t{number}" for number, name in enumerate(sorted(faces), start=1)}
        tree = _explicit(_bound(text, labels, views), {labels[name]: face for name, face in faces.items()})
        used = {column.name for column in tree.find_all(exp.Column)}
        tree = Meaning(by_bytes=by_bytes).translated(tree)
        for table in list(tree.find_all(exp.Table)):
            for name, label in labels.items():
                if table.name == label and not table.db:
                    table.replace(_rows(table, faces[name], used))
        query = tree.sql("postgres", normalize_functions=False, comments=False)
    names = [f"c{place}" for place, _ in enumerate(result, start=1)]
    listed = ", ".join(
        f"q.{name}::{kind} AS {identifier(wanted)}" for name, (wanted, kind) in zip(names, result, strict=True)
    )
    return f"SELECT {listed}\nFROM ({query}) AS q({', '.join(names)})"


def _parsed(text: str) -> Expr:
    try:
        return sqlglot.parse_one(text, read=_SPARK)
    except SqlglotError as error:
        raise UnsupportedQuery("the query cannot be read", detail=str(error).split("\n", 1)[0]) from error


def _bound(text: str, labels: Mapping[TableName, str], views: Mapping[TableName, str]) -> Expr:
    """The tree of a text with tables under their labels, and views as the queries that they are."""
    tree = _parsed(text)
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (not table.db and _is_cte(table)):
            continue
        name = TableName.of([part.name for part in table.parts])
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        if name in views:
            inner = _bound(views[name], labels, views)
            table.replace(exp.Subquery(this=inner, alias=alias.copy(), joins=table.args.get("joins")))
            continue
        table.set("alias", alias.copy())
        table.set("this", exp.to_identifier(labels[name]))
        table.set("db", None)
    return tree


def _is_cte(table: exp.Table) -> bool:
    node: Expr | None = table
    while node is not None:
        clause = node.args.get("with_")
        if clause and any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        node = node.parent
    return False


def _explicit(tree: Expr, faces: Mapping[str, Face]) -> Expr:
    """The tree with every column qualified and typed, stars written out."""
    schema: dict[str, object] = {
        label: {c.name.lower(): c.spark_type for c in face.columns} for label, face in faces.items()
    }
    try:
        qualified = qualify(tree, schema=schema, dialect=_SPARK, validate_qualify_columns=False)
        return annotate_types(qualified, schema=schema, dialect=_SPARK)
    except SqlglotError as error:
        raise UnsupportedQuery("the query cannot be read", detail=str(error).split("\n", 1)[0]) from error


def _rows(table: exp.Table, face: Face, used: set[str]) -> exp.Subquery:
    """A table as its replica shows it, in the columns that are used."""
    wanted = [column for column in face.columns if column.name.lower() in used]
    for column in wanted:
        if column.refused is not None:
            raise UnsupportedQuery(
                f"column {column.name!r} of {face.schema}.{face.table} cannot be used in IMMEDIATE",
                detail=column.refused,
                hint="use DIFFERENTIAL",
            )
    items = [_column(column) for column in wanted] or [exp.alias_(exp.Literal.number(1), "one", quoted=True)]
    place = exp.Table(this=exp.to_identifier(face.table, quoted=True), db=exp.to_identifier(face.schema, quoted=True))
    query = exp.Select(expressions=items).from_(place)
    return exp.Subquery(this=query, alias=table.args["alias"].copy(), joins=table.args.get("joins"))


def _column(column: FaceColumn) -> Expr:
    value: Expr = exp.column(exp.to_identifier(column.own, quoted=True))
    if column.cast is not None:
        value = exp.Cast(this=value, to=exp.DataType(this=exp.DType.USERDEFINED, kind=column.cast))
    return exp.alias_(value, column.name.lower(), quoted=True)
