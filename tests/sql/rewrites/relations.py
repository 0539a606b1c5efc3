"""Three small tables with NULLs, duplicates and gaps, in DuckDB, and queries on them through the rewrites."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import duckdb

from trickle.algebra.names import TableName
from trickle.operators import Operator, show
from trickle.sql.build import build_tree
from trickle.sql.lower import lower
from trickle.sql.rewrites import rewrite
from trickle.testing.connect import in_memory

SCHEMAS = {TableName.of([name]): {"id": "int", "a": "int", "b": "int", "s": "string"} for name in ("t", "u", "v")}


def database(seed: int, rows: Sequence[int]) -> duckdb.DuckDBPyConnection:
    """A database of t, u and v with this many rows each."""
    draw = random.Random(seed)
    connection = in_memory()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for name, count in zip("tuv", rows, strict=True):
        connection.execute(f"CREATE TABLE {name} (id INT, a INT, b INT, s TEXT)")
        for _ in range(count):
            values = [draw.choice((None, 1, 1, 2, 3)) for _ in range(3)]
            connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [*values, draw.choice((None, "x", "y"))])
    return connection


def rows_of(connection: duckdb.DuckDBPyConnection, text: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(_hashable, row)) for row in connection.execute(text).fetchall())


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def tree_of(text: str) -> Operator:
    return build_tree(text, SCHEMAS, standard=True)


def typed(tree: Operator) -> Operator:
    """The tree rewritten with the types of columns known, as they are to the engine."""
    return rewrite(tree, SCHEMAS)


def through(text: str, rule: Callable[[Operator], Operator]) -> str:
    """The query in DuckDB's SQL, by way of its tree and a rewrite."""
    return lower(rule(tree_of(text)), lambda leaf: leaf.table if hasattr(leaf, "table") else leaf.name, "duckdb")


def shown(text: str, rule: Callable[[Operator], Operator]) -> str:
    """The rewritten tree of a query, as text."""
    return show(rule(tree_of(text)))
