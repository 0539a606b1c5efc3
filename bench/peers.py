"""The queries of TPC-H computed anew by others over the same unchanged tables, as a measure for FULL: DuckDB in this
process over the Parquet files, its result stored in a table in memory; PostgreSQL with REFRESH MATERIALIZED VIEW
(primary keys and indexes on foreign keys, 256 MB of working memory, up to SF 1, at most five minutes a query). The
second computation is timed.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import psycopg

from bench.figures import Line, Note, timed
from bench.postgres import loaded
from bench.show import milliseconds
from bench.sizes import Sizes
from bench.tpch_tables import QUERIES, TABLES, Data, generated
from trickle import Trickle


@dataclass(frozen=True)
class Peer:
    """How long others take for a query; None where they were not asked, or not done in time."""

    what: str
    scale: float
    duckdb_ms: float | None
    postgres_ms: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "what": self.what,
            "scale": self.scale,
            "duckdb_ms": self.duckdb_ms,
            "postgres_ms": self.postgres_ms,
        }


def run(_: Trickle, sizes: Sizes) -> Iterator[Line | Peer | Note]:
    """DuckDB first, then PostgreSQL."""
    data = generated(sizes.scale, sizes.data)
    queries = sizes.queries or tuple(QUERIES)
    found: dict[str, dict[str, float]] = {"duckdb": {}, "postgres": {}}
    with duckdb.connect(config={"threads": _cores()}) as db:
        for table in TABLES:
            db.read_parquet(str(data.file(table))).create_view(table)
        for query in queries:
            statement = f"CREATE OR REPLACE TABLE result AS {QUERIES[query]}"
            found["duckdb"][query] = _timed(db.execute, statement, sizes.repeat)
            yield Note(f"{query}: DuckDB {milliseconds(found['duckdb'][query])}")
    if sizes.scale <= sizes.postgres_scale:
        yield from _postgres(data, queries, sizes.repeat, found["postgres"])
    for query in queries:
        yield Peer(query, data.scale, found["duckdb"].get(query), found["postgres"].get(query))


def _postgres(data: Data, queries: tuple[str, ...], repeat: int, found: dict[str, float]) -> Iterator[Line | Note]:
    with loaded(data) as (connection, took):
        yield Line(f"load SF {data.scale:g} into PostgreSQL", (took,))
        for query in queries:
            try:
                connection.execute(f"CREATE MATERIALIZED VIEW {query} AS {QUERIES[query]}".encode())
                found[query] = _timed(
                    lambda text: connection.execute(text.encode()), f"REFRESH MATERIALIZED VIEW {query}", repeat, warm=0
                )
                yield Note(f"{query}: PostgreSQL {milliseconds(found[query])}")
            except psycopg.errors.QueryCanceled:
                yield Note(f"{query}: PostgreSQL was not done in time")


def _timed(execute: Callable[[str], object], statement: str, repeat: int, *, warm: int = 1) -> float:
    times = [timed(execute, statement)[0] for _ in range(repeat + warm)]
    return round(statistics.median(times[warm:]), 3)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
