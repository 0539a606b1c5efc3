"""What is translated means the same: Spark over the replica and PostgreSQL over the table give the same rows."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame

from trickle.api import Trickle

TABLE = """
    CREATE TABLE things (id int PRIMARY KEY, big bigint, small smallint, price numeric(12, 2), open numeric,
        ratio float8, part real, word text, day date, at timestamp, seen timestamptz, flag boolean, key uuid,
        span interval);
    INSERT INTO things VALUES
        (1, 7, 3, 10.10, 1.5, 0.1, 0.5, 'ada', '2024-01-31', '2024-01-31 23:30:00', '2024-01-31 23:30:00+02', true,
         '00000000-0000-0000-0000-00000000000a', '1 day 02:00'),
        (2, -7, -2, -3.33, 2.25, -2.5, 0.25, '  é_x ', '2023-12-31', '1999-12-31 00:00:01', '1970-01-01 00:00:00Z',
         false, NULL, '-1 mon'),
        (3, 9007199254740993, 0, 123456789.99, 0.000001, 1e15, 3, '', '2024-02-29', NULL, NULL, NULL, NULL, NULL),
        (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2024-02-29 12:00', '2024-02-29 12:00Z', true, NULL, NULL),
        (5, 2, 2, 2.00, 7, 2.5, 2, 'Ada', '2024-01-31', NULL, '2024-01-31 00:30:00-05', false, NULL, '3 days');
"""
VALUES = (
    "big + small", "big * 2 - id", "id / (small + 7)", "price / 3", "price / open", "open * price", "ratio / id",
    "big div 2",
    "big % 3", "price % 4", "abs(price)", "-ratio", "round(price, 1)", "round(price * 0.5, 0)", "CAST(price AS INT)",
    "CAST(ratio AS BIGINT)", "CAST(big AS DOUBLE)", "CAST(id AS STRING)", "CAST(day AS STRING)", "CAST(seen AS DATE)",
    "CAST(price AS DECIMAL(14, 4))", "concat(word, '|', word)", "word || 'x'", "length(word)", "trim(word)",
    "substring(word, 2, 2)", "word LIKE '%a'", "coalesce(word, 'none')", "nullif(word, '')", "if(flag, 'y', 'n')",
    "CASE WHEN price > 5 THEN price WHEN flag THEN 0 END", "year(day)", "quarter(day)", "month(seen)",
    "day(at)", "extract(YEAR FROM day)", "date_add(day, 3)", "date_sub(day, 1)", "datediff(day, DATE '2024-01-01')",
    "day + INTERVAL 1 MONTH", "greatest(id, small)", "least(price, 3)", "flag AND price > 0",
    "NOT flag OR word IS NULL",
    "price IS NOT NULL", "word <=> NULL", "day BETWEEN '2024-01-01' AND '2024-02-01'", "id IN (1, 2, NULL)", "key",
    "span",
    "part * 2", "word = 'ada'", "seen < TIMESTAMP '2024-02-01 00:00:00'",
)  # fmt: skip
GROUPED = (
    "count(*)", "count(word)", "count(DISTINCT day)", "sum(big)", "sum(price)", "sum(open)", "sum(ratio)", "sum(part)",
    "avg(id)", "avg(price)", "avg(open)", "avg(ratio)", "min(day)", "max(price)", "min(seen)", "count_if(flag)",
    "bool_and(flag)", "bool_or(flag)", "sum(price) / count(*)", "avg(price) * 2 / 3", "sum(price) FILTER (WHERE flag)",
)  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, {} FROM shop.things".format(", ".join(f"{text} AS v{n}" for n, text in enumerate(VALUES))),
        "SELECT flag, {} FROM shop.things GROUP BY flag".format(
            ", ".join(f"{text} AS v{n}" for n, text in enumerate(GROUPED))
        ),
    ],
    ids=["values", "aggregates"],
)
def test_in_both(t: Trickle, dsn: str, query: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute(TABLE)
        t.attach_postgres("shop", dsn, tables=["things"], cdc_mode="trigger")
        t.create_stream_table("result", query, refresh_mode="IMMEDIATE")
        frame = t.sql(query)
        assert isinstance(frame, DataFrame)
        expected = _by_column(frame.columns, frame.collect())
        table = t.table("result")
        assert table.dtypes == frame.dtypes
        assert _by_column(table.columns, table.collect()) == expected
        # Whatever the session of a writer says.
        session.execute(
            "SET timezone = 'America/New_York'; SET datestyle = 'German'; SET intervalstyle = 'sql_standard'"
        )
        session.execute("UPDATE things SET small = small")
        session.execute("UPDATE things SET id = id + 10")
        session.execute("UPDATE things SET id = id - 10")
        assert _by_column(table.columns, table.collect()) == expected


def _by_column(names: list[str], rows: list[Any]) -> dict[str, Counter[Any]]:
    return {name: Counter(_plain(row[place]) for row in rows) for place, name in enumerate(names)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.12g}"
    return value.normalize() if isinstance(value, Decimal) else value
