"""Statements on tables that IMMEDIATE stream tables follow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.immediate.lake.checking import agree, pinned
from tests.scenarios.story import changed, contents, state
from trickle.api import Trickle

MERGE = """
MERGE INTO orders o USING (SELECT 2 AS id, 50 AS amount UNION ALL SELECT 9, 9) s ON o.id = s.id
WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (9, 9)
"""
TOTALS = "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"


@pytest.fixture
def shop(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE orders (id INT, customer STRING, amount INT)")
    t.sql("INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 5), (3, NULL, 1)")
    t.create_stream_table("totals", TOTALS, refresh_mode="IMMEDIATE")
    return t


def test_every_kind_of_statement_is_followed(shop: Trickle) -> None:
    t = shop
    agree(t)
    assert pinned(t) == {"orders"}
    for text, counts in (
        ("INSERT INTO orders VALUES (4, 'ada', 7), (5, 'eve', 2)", (2, 0)),
        ("UPDATE orders SET amount = amount + 1 WHERE customer = 'ada'", (2, 2)),
        ("DELETE FROM orders WHERE customer IS NULL", (0, 1)),
        ("INSERT INTO orders SELECT id + 100, customer, amount FROM orders WHERE customer = 'bob'", (1, 0)),
        (MERGE, (2, 1)),
        ("INSERT OVERWRITE orders SELECT id, customer, amount FROM orders WHERE id < 100", (5, 6)),
        ("UPDATE orders SET id = id WHERE id = -1", (0, 0)),
        ("TRUNCATE TABLE orders", (0, 5)),
        ("INSERT INTO orders VALUES (1, 'zoe', 1)", (1, 0)),
    ):
        assert changed(t, text) == counts, text
        agree(t)
    assert contents(t, "totals") == [("zoe", 1, 1)]


def test_writing_calls_of_the_api_are_followed(shop: Trickle) -> None:
    whole = pa.int32()
    rows = pa.table({"id": pa.array([7, 8], whole), "customer": ["kim", None], "amount": pa.array([1, 2], whole)})
    assert shop.write("orders", rows).rows_inserted == 2
    agree(shop)
    shop.write("orders", rows, mode="overwrite")
    agree(shop)
    assert contents(shop, "totals") == [(None, 2, 1), ("kim", 1, 1)]
    assert state(shop, "totals").effective_refresh_mode == "DIFFERENTIAL"
