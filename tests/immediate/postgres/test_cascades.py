"""IMMEDIATE stream tables that read IMMEDIATE stream tables."""

from __future__ import annotations

import pytest

from tests.immediate.postgres.story import Story
from trickle.immediate.postgres import describe

STATEMENTS = (
    "INSERT INTO orders VALUES (100, 3, 11.5, NULL, NULL)",
    "INSERT INTO orders SELECT n, n % 15, n % 13, NULL, NULL FROM generate_series(101, 160) n",
    "UPDATE orders SET customer = customer + 1 WHERE id % 4 = 0",
    "UPDATE customers SET region = 'r9' WHERE id < 4",
    "DELETE FROM orders WHERE id % 3 = 0",
    "DELETE FROM customers WHERE id % 2 = 0",
    "TRUNCATE orders",
    "INSERT INTO orders VALUES (1, 1, 1, NULL, NULL), (2, 3, 4, NULL, NULL)",
)


@pytest.fixture
def totals(shop: Story) -> Story:
    shop.install("totals", "SELECT customer, sum(amount) AS s, count(*) AS n FROM orders GROUP BY customer")
    return shop


def test_a_chain(totals: Story) -> None:
    totals.install("sizes", "SELECT n, count(*) AS customers, sum(s) AS s FROM totals GROUP BY n")
    totals.install("most", "SELECT max(customers) AS most FROM sizes")
    totals.run(*STATEMENTS)


def test_rows_in_between(shop: Story) -> None:
    shop.install("big", "SELECT id, customer FROM orders WHERE amount > 5")
    shop.install("busy", "SELECT customer, count(*) AS n FROM big GROUP BY customer")
    shop.run(*STATEMENTS)


def test_a_diamond(totals: Story) -> None:
    totals.install("named", "SELECT c.name, c.region, t.s FROM customers c JOIN totals t ON t.customer = c.id")
    totals.install(
        "shares", "SELECT o.id, o.amount / nullif(t.s, 0) AS share FROM orders o JOIN totals t USING (customer)"
    )
    totals.install("all_of_it", """
        SELECT n.region, count(*) AS orders, sum(sh.share) AS share FROM named n
        JOIN customers c ON c.name = n.name JOIN orders o ON o.customer = c.id JOIN shares sh ON sh.id = o.id
        GROUP BY n.region
    """)  # fmt: skip
    totals.run(*STATEMENTS)


def test_stream_tables_that_read_each_other_share_a_lock(totals: Story) -> None:
    assert describe(totals.connection, "totals").by_group
    totals.install("clicked", "SELECT page, count(*) AS n FROM clicks GROUP BY page")
    totals.install("sizes", "SELECT n, count(*) AS customers FROM totals GROUP BY n")
    assert not describe(totals.connection, "totals").by_group
    assert not describe(totals.connection, "sizes").by_group
    assert describe(totals.connection, "clicked").by_group


def test_views_are_looked_through(totals: Story) -> None:
    totals.connection.execute("CREATE VIEW busy AS SELECT customer, n FROM totals WHERE n > 3")
    totals.connection.execute(
        "CREATE VIEW named AS SELECT c.name, b.n FROM customers c JOIN busy b ON b.customer = c.id"
    )
    made = totals.install("busy_names", "SELECT name FROM named")
    assert set(made.sources) == {"public.customers", "public.totals"}
    totals.run(*STATEMENTS)
