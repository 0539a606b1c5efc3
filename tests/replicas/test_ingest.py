from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

from trickle.api import Trickle
from trickle.replicas.attach import attach_postgres
from trickle.replicas.ingest import ingest

Session = psycopg.Connection[tuple[object, ...]]


def lake(t: Trickle, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in t.table(name).collect())


def source(shop: Session, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in shop.execute(f"SELECT * FROM {name}"))


def test_a_database_is_attached_and_followed(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn)
    assert lake(t, "shop.orders") == source(shop, "orders")
    assert lake(t, "shop.notes") == source(shop, "notes")
    assert ingest(t.warehouse) == []

    shop.execute("INSERT INTO orders VALUES (100, 'new', 1.5, 'NaN')")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 10")
    shop.execute("DELETE FROM orders WHERE id BETWEEN 20 AND 25")
    shop.execute("DELETE FROM notes WHERE ctid = (SELECT min(ctid) FROM notes)")
    results = {r.name: (r.rows_inserted, r.rows_deleted) for r in ingest(t.warehouse)}
    assert results == {"shop.orders": (11, 16), "shop.notes": (0, 1)}
    assert lake(t, "shop.notes") == source(shop, "notes")
    assert {row[0]: row[1:3] for row in lake(t, "shop.orders")} == {row[0]: row[1:3] for row in source(shop, "orders")}

    shop.execute("TRUNCATE notes; INSERT INTO notes VALUES ('fresh')")
    ingest(t.warehouse)
    assert lake(t, "shop.notes") == {("fresh",): 1}
