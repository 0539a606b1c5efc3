"""TPC-H in PostgreSQL, its queries as stream tables over captured sources, compared with PostgreSQL's own answers.

Some queries and two cycles of changes in the suite; all 22 and five cycles with ``make test-postgres-long``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from tests.immediate.postgres.test_tpch import KEYS, STATEMENTS
from tests.postgres import Postgres
from tests.tpch.schemas import SCHEMAS
from tests.tpch.story import QUERIES, tables
from trickle.algebra.names import TableName
from trickle.api import Trickle

LONG = bool(os.environ.get("TRICKLE_POSTGRES_LONG"))
CHOSEN = list(QUERIES) if LONG else ["q03", "q04", "q13", "q16"]
SPLITS = (0, 9, 18, 27, 36, len(STATEMENTS)) if LONG else (0, 26, len(STATEMENTS))
CYCLES = [STATEMENTS[start:end] for start, end in pairwise(SPLITS)]
Row = tuple[Any, ...]


@pytest.fixture
def dsn(logical_postgres: Postgres) -> Iterator[str]:
    """The eight tables at scale 0.01."""
    with logical_postgres.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for name, rows in tables(0.01):
                kinds = SCHEMAS[TableName.of([name])]
                columns = ", ".join(f"{column} {kind.replace('string', 'text')}" for column, kind in kinds.items())
                connection.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({KEYS[name]}))")
                with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                        copy.write_row(row)
            connection.execute("ANALYZE")
        yield url


def same(found: Sequence[Row], wanted: Sequence[Row]) -> bool:
    """Whether the rows are equal, in any order; averages and quotients have fewer digits in Spark."""
    if len(found) != len(wanted):
        return False
    pairs = zip(sorted(found, key=_place), sorted(wanted, key=_place), strict=True)
    return all(_alike(one, other) for ours, theirs in pairs for one, other in zip(ours, theirs, strict=True))


def _place(row: Row) -> tuple[list[str], list[float]]:
    texts = [str(value) for value in row if not isinstance(value, int | float | Decimal)]
    return texts, [round(float(value), 2) for value in row if isinstance(value, int | float | Decimal)]


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float | Decimal) and isinstance(other, int | float | Decimal):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-5)
    return bool(one == other)


@pytest.mark.timeout(3600 if LONG else 600)
@pytest.mark.parametrize("mode", ["trigger", "wal"])
def test_stream_tables_equal_what_postgresql_answers(t: Trickle, dsn: str, mode: str) -> None:
    t.attach_postgres("default", dsn, cdc_mode=mode)
    with psycopg.connect(dsn, autocommit=True) as shop:

        def check(name: str, when: str) -> None:
            found = [tuple(row) for row in t.table(name).collect()]
            assert same(found, shop.execute(QUERIES[name].encode()).fetchall()), f"{name} {when}"

        for name in CHOSEN:
            t.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL")
            check(name, "at first")
        for number, statements in enumerate(CYCLES):
            for statement in statements:
                shop.execute(statement.encode())
            t.ingest()
            for name in CHOSEN:
                done = t.refresh_stream_table(name)
                assert done.action in ("DIFFERENTIAL", "NO_DATA"), f"{name}: {done.reason}"
                check(name, f"after cycle {number}")
    t.detach("default", cascade=True)
