"""What tests of publications share."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

from trickle.api import Trickle

Session = psycopg.Connection[tuple[object, ...]]
Rows = Counter[tuple[Any, ...]]


def build(t: Trickle) -> None:
    """A table of orders, and two stream tables over it: one with a row for each customer, one with duplicates."""
    t.sql("CREATE TABLE orders (id BIGINT, customer STRING, amount DECIMAL(12,2))")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 20), (3, 'ada', 5), (4, NULL, 1)")
    t.create_stream_table(
        "totals",
        "SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer",
        refresh_mode="DIFFERENTIAL",
    )
    t.create_stream_table("amounts", "SELECT customer FROM orders", refresh_mode="DIFFERENTIAL")


def lake(t: Trickle, name: str) -> Rows:
    return Counter(tuple(row) for row in t.table(name).collect())


def published(there: Session, name: str) -> Rows:
    return Counter(there.execute(f"SELECT * FROM {name}").fetchall())


def position(there: Session) -> list[tuple[object, ...]]:
    return there.execute(
        "SELECT target::text, stream_table, version FROM trickle_publish.positions ORDER BY 1"
    ).fetchall()
