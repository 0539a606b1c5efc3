"""Trees and rows for tests of lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from trickle.operators import Expr, Face, Operator, Output, Scan, Step
from trickle.sql.lower import lower
from trickle.sql.tokens import read_source
from trickle.sql.trees import expression_tree
from trickle.testing.duck import Duck

Given = tuple[Sequence[str], Sequence[Sequence[Any]]]


def e(text: str) -> Expr:
    """An expression as the builder leaves it: functions uninterpreted, columns quoted."""
    source = read_source(text)
    tree = expression_tree(source, list(source.tokens), 64).root
    for column in tree.find_all(exp.Column):
        column.this.set("quoted", True)
    return tree


def out(**columns: str) -> tuple[Output, ...]:
    return tuple(Output(name, e(text)) for name, text in columns.items())


def scan(table: str, *columns: str, face: Face = Face.NEW, suffix: str = "") -> Scan:
    return Scan(table, tuple((column, column + suffix) for column in columns), face)


def duck(**tables: Given) -> Duck:
    """A DuckDB with tables: names of columns and rows."""
    given = Duck()
    for name, (columns, rows) in tables.items():
        values = [[row[place] for row in rows] for place in range(len(columns))]
        given.load(name, Face.NEW, pa.table(dict(zip(columns, values, strict=True))))
    return given


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in a fixed order."""
    listed = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return sorted(listed, key=lambda row: [(value is None, str(type(value)), value) for value in row])


def named(leaf: Scan | Step) -> str:
    return f"v_{leaf.table}_{leaf.face.value}" if isinstance(leaf, Scan) else leaf.name


def spark(tree: Operator, name_of: Callable[[Scan | Step], str] = named) -> str:
    return lower(tree, name_of, "spark")
