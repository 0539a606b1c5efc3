"""The shop's tables, its first rows, and what happens in it: the same on every run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

from trickle import Trickle

TABLES = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING NOT NULL, segment STRING);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT, day DATE, status STRING);
CREATE TABLE order_lines (order_id BIGINT, line INT, product STRING, quantity INT, price DECIMAL(10, 2));
"""

# Each reads the one before it.
STREAM_TABLES = {
    "order_totals": """
        SELECT o.id AS order_id, o.customer_id, o.day, COUNT(*) AS lines, SUM(l.quantity * l.price) AS total
        FROM orders o JOIN order_lines l ON l.order_id = o.id
        WHERE o.status <> 'cancelled'
        GROUP BY o.id, o.customer_id, o.day""",
    "customer_revenue": """
        SELECT c.id, c.name, c.segment, COUNT(t.order_id) AS orders, COALESCE(SUM(t.total), 0) AS revenue
        FROM customers c LEFT JOIN order_totals t ON t.customer_id = c.id
        GROUP BY c.id, c.name, c.segment""",
    "segment_summary": """
        SELECT segment, COUNT(*) AS customers, SUM(orders) AS orders, SUM(revenue) AS revenue, MAX(revenue) AS best
        FROM customer_revenue
        GROUP BY segment""",
}

LOADED = ("order_totals",)
"""What reads the tables that a load fills every night: these have a fuse."""

_NAMES = ("Ada", "Blaise", "Carl", "Dorothy", "Emmy", "Felix", "Grace", "Hedy", "Ibn", "Joan", "Katherine", "Leonhard")
_SEGMENTS = ("home", "office", "school")
_PRODUCTS = {"pencil": "0.80", "notebook": "3.20", "lamp": "24.90", "desk": "189.00", "chair": "99.50"}
_CUSTOMERS = 60
_OPENING = date(2026, 3, 2)


@dataclass(frozen=True)
class Batch:
    """Something that happens in the shop, and what it does to the tables."""

    title: str
    happen: Callable[[Trickle], object]


def fill(t: Trickle) -> None:
    """Make the tables and put the first rows in."""
    t.sql(TABLES)
    customers = [
        {"id": i, "name": f"{_NAMES[i % len(_NAMES)]} {i}", "segment": _SEGMENTS[i % len(_SEGMENTS)]}
        for i in range(_CUSTOMERS)
    ]
    t.write("customers", pa.Table.from_pylist(customers))
    trade(t, first_order=0, orders=400, day=_OPENING)


def batches() -> list[Batch]:
    """What happens after the opening."""
    next_day = _OPENING + timedelta(days=1)
    return [
        Batch("a day of trade: 40 orders come in", lambda t: trade(t, first_order=400, orders=40, day=next_day)),
        Batch(
            "lamps become cheaper, and two orders are cancelled",
            lambda t: t.sql("""
                UPDATE order_lines SET price = price * 0.9 WHERE product = 'lamp';
                UPDATE orders SET status = 'cancelled' WHERE id IN (7, 411)"""),
        ),
        Batch(
            "a customer asks to be forgotten",
            lambda t: t.sql("""
                DELETE FROM order_lines WHERE order_id IN (SELECT id FROM orders WHERE customer_id = 5);
                DELETE FROM orders WHERE customer_id = 5;
                DELETE FROM customers WHERE id = 5"""),
        ),
        Batch(
            "the sales team merges its list of customers",
            lambda t: t.sql("""
                MERGE INTO customers AS c
                USING (VALUES (1, 'Blaise 1', 'school'), (2, 'Carl 2', 'closed'), (900, 'Maria 900', 'office'))
                    AS list(id, name, segment)
                ON c.id = list.id
                WHEN MATCHED AND list.segment = 'closed' THEN DELETE
                WHEN MATCHED THEN UPDATE SET *
                WHEN NOT MATCHED THEN INSERT *"""),
        ),
    ]


def empty(t: Trickle) -> dict[str, pa.Table]:
    """A load that begins by emptying its tables, and gets no further; what they held."""
    kept = {name: t.table(name).toArrow() for name in ("orders", "order_lines")}
    for name in kept:
        t.sql(f"TRUNCATE TABLE {name}")
    return kept


def load_again(t: Trickle, kept: dict[str, pa.Table]) -> None:
    """The load as it should have been."""
    for name, rows in kept.items():
        t.write(name, rows)


def trade(t: Trickle, *, first_order: int, orders: int, day: date) -> None:
    """Orders with one to five lines each."""
    dice = random.Random(first_order)
    numbers = range(first_order, first_order + orders)
    heads = [{"id": n, "customer_id": dice.randrange(_CUSTOMERS), "day": day, "status": "placed"} for n in numbers]
    lines = [_line(dice, n, line) for n in numbers for line in range(1, dice.randint(1, 5) + 1)]
    t.write("orders", pa.Table.from_pylist(heads))
    t.write("order_lines", pa.Table.from_pylist(lines))


def _line(dice: random.Random, order: int, line: int) -> dict[str, object]:
    product = dice.choice(sorted(_PRODUCTS))
    price = Decimal(_PRODUCTS[product])
    return {"order_id": order, "line": line, "product": product, "quantity": dice.randint(1, 4), "price": price}
