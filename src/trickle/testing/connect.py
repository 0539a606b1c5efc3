"""DuckDB as the tests use it."""

from __future__ import annotations

import duckdb


def in_memory() -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that gives the same rows each time."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    # It takes rows that find no partner in a join out below ORDER BY with LIMIT, which lets others move up.
    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
    return connection
