"""A change of one row costs as much in a large table as in a small one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Postgres
from trickle.immediate.postgres import drop, install

SIZES = (100_000, 1_000_000)
MOST = 2.0
REPEATED = 40
QUERIES = {
    "groups": "SELECT customer, sum(amount) AS s, count(*) AS n, max(amount) AS top FROM orders GROUP BY customer",
    "a join of groups": """SELECT c.region, sum(o.amount) AS s, count(*) AS n FROM orders o
        JOIN customers c ON c.id = o.customer GROUP BY c.region""",
    "a left join": "SELECT c.id, c.region, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id",
    "stages": (
        "SELECT n, count(*) AS c FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x GROUP BY n"
    ),
    "a window": "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders",
}


@pytest.fixture(scope="module")
def connections(postgres: Postgres) -> Iterator[list[psycopg.Connection]]:
    """The same tables, small and large."""
    with postgres.database() as small, postgres.database() as large:
        made = []
        for url, size in zip((small, large), SIZES, strict=True):
            made.append(psycopg.connect(url, autocommit=True))
            made[-1].execute(f"""
                CREATE TABLE customers (id int PRIMARY KEY, region text NOT NULL);
                CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL);
                INSERT INTO customers SELECT n, 'r' || n % 50 FROM generate_series(1, {size // 10}) n;
                INSERT INTO orders SELECT n, 1 + n % {size // 10}, n % 97 FROM generate_series(1, {size}) n;
                CREATE INDEX ON orders (customer);
                ANALYZE;
            """)
        yield made
        for connection in made:
            connection.close()


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_ten_times_the_rows(connections: list[psycopg.Connection], query: str) -> None:
    for connection in connections:
        install(connection, "result", query)
    best = [dict.fromkeys(("INSERT", "UPDATE", "DELETE"), float("inf")) for _ in connections]
    # One after the other, so that what else the machine does falls on both; the best of each is its cost.
    for turn in range(REPEATED):
        for connection, costs in zip(connections, best, strict=True):
            for statement in (
                f"INSERT INTO orders VALUES ({9_000_000 + turn}, {17 + turn}, {turn})",
                f"UPDATE orders SET amount = amount + 1 WHERE id = {1000 + turn}",
                f"DELETE FROM orders WHERE id = {9_000_000 + turn}",
            ):
                begun = time.perf_counter()
                connection.execute(statement)
                kind = statement.split()[0]
                costs[kind] = min(costs[kind], time.perf_counter() - begun)
    for connection in connections:
        drop(connection, "result")
    _check(best)


def test_first_rows_that_go_and_come(connections: list[psycopg.Connection]) -> None:
    """Others move up, and are found by an index over the whole order: many rows are equal in its beginning."""
    first = "(SELECT id FROM result ORDER BY amount DESC, id LIMIT 1)"
    statements = {
        "INSERT": "INSERT INTO orders VALUES ({}, 17, 1000)",
        "DELETE": f"DELETE FROM orders WHERE id = {first}",
        "UPDATE": f"UPDATE orders SET amount = 0 WHERE id = {first}",
    }
    for connection in connections:
        made = install(connection, "result", "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 10")
        (index,) = made.missing_indexes
        connection.execute(index)
        connection.execute("ANALYZE orders")
    best = [dict.fromkeys(statements, float("inf")) for _ in connections]
    for turn in range(REPEATED):
        for connection, costs in zip(connections, best, strict=True):
            for kind, statement in statements.items():
                begun = time.perf_counter()
                connection.execute(statement.format(8_000_000 + turn))
                costs[kind] = min(costs[kind], time.perf_counter() - begun)
    for connection in connections:
        drop(connection, "result")
    _check(best)


def _check(best: list[dict[str, float]]) -> None:
    small, large = best
    grown = {kind: large[kind] / small[kind] for kind in small}
    assert all(times < MOST for times in grown.values()), grown
