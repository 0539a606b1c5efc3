"""Stories over the whole path: a PostgreSQL database, its replicas, and stream tables on them."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.errors import (
    DependentsExist,
    InvalidData,
    InvalidName,
    InvalidOption,
    SourceUnreachable,
    UnknownTable,
    UnsupportedTable,
    WrongKind,
)

TOTALS = "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM shop.orders GROUP BY customer"


def totals(t: Trickle) -> dict[str, Any]:
    return {row.customer: (row.n, row.total) for row in t.table("totals").collect()}


def expected(shop: Session) -> dict[str, Any]:
    found = shop.execute("SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer")
    return {str(customer): (n, total) for customer, n, total in found}


def test_a_stream_table_follows_a_table_of_postgresql(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn, tables=["orders"])
    t.create_stream_table("totals", TOTALS, schedule="1s", refresh_mode="DIFFERENTIAL")
    assert totals(t) == expected(shop)
    shop.execute("UPDATE orders SET amount = 0 WHERE id < 8; DELETE FROM orders WHERE customer = 'c1'")
    result = t.refresh_stream_table("totals")
    assert result.action == "DIFFERENTIAL"
    assert totals(t) == expected(shop)
    shop.execute("INSERT INTO orders VALUES (1000, 'c9', 5, 1)")
    (ticked,) = t.tick(datetime.now(UTC) + timedelta(seconds=10))
    assert ticked.action == "DIFFERENTIAL"
    assert totals(t) == expected(shop)
    assert t.tick(datetime.now(UTC) + timedelta(seconds=20)) == []


def test_a_replica_is_only_read_here(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn, tables=["orders"])
    with pytest.raises(WrongKind, match="replica"):
        t.sql("INSERT INTO shop.orders VALUES (1, 'x', 1, 1)")
    with pytest.raises(WrongKind, match="replica"):
        t.sql("DROP TABLE shop.orders")
    with pytest.raises(WrongKind):
        t.sql("ALTER TABLE shop.orders ADD COLUMN x INT")


def test_attach_by_sql_and_what_is_listed(t: Trickle, shop: Session, dsn: str) -> None:
    t.sql(f"CALL trickle.attach_postgres('shop', '{dsn}', tables => 'orders')")
    (row,) = t.list_sources()
    assert (row.name, row.source, row.status, row.key) == ("shop.orders", "public.orders", "ACTIVE", "id")
    (status,) = t.cdc_status()
    assert (status.state, status.cdc_mode) == ("TRIGGER", "auto")
    shop.execute("INSERT INTO orders VALUES (1000, 'c9', 5, 1)")
    (buffer,) = t.change_buffer_sizes()
    assert buffer.rows == 1
    (health,) = t.check_cdc_health()
    assert health.state == "OK"
    found = t.sql("SELECT source FROM trickle.list_sources")
    assert [tuple(row) for row in found.collect()] == [("public.orders",)]  # type: ignore[union-attr]  # a query
    assert [(r.name, r.rows_inserted) for r in t.ingest("shop")] == [("shop.orders", 1)]


def test_further_tables_and_letting_go(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn, tables=["orders"])
    t.attach_postgres("shop", dsn, tables=["notes"])
    t.create_stream_table("totals", TOTALS)
    with pytest.raises(DependentsExist):
        t.detach("shop", tables=["orders"])
    assert t.detach("shop", tables=["notes"]) == ["shop.notes"]
    assert set(t.detach("shop", cascade=True)) == {"shop.orders", "totals"}
    assert t.list_sources() == []
    left = shop.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone()
    assert left == (0,)
    t.attach_postgres("shop", dsn)
    assert len(t.list_sources()) == 2


def test_what_cannot_be_attached_leaves_nothing(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("CREATE VIEW seen AS SELECT 1 AS one")
    for tables in (["orders", "nowhere"], ["seen"]):
        with pytest.raises((UnknownTable, UnsupportedTable)):
            t.attach_postgres("shop", dsn, tables=tables)
        assert t.list_sources() == []
        assert [row.name for row in t.tables()] == []
    with pytest.raises(InvalidOption, match="no capture"):
        t.attach_postgres("shop", dsn, cdc_mode="guess")
    with pytest.raises(SourceUnreachable):
        t.attach_postgres("shop", "postgresql://a:s3cret@/x?host=/nowhere")
    with pytest.raises(InvalidName):
        t.attach_postgres("", dsn)


def test_values_that_do_not_fit_are_named_and_nothing_moves(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("CREATE TABLE days (d date)")
    t.attach_postgres("shop", dsn)
    shop.execute("INSERT INTO notes VALUES ('waits')")
    shop.execute("INSERT INTO days VALUES ('infinity')")
    with pytest.raises(InvalidData, match="column 'd'") as caught:
        t.ingest()
    assert "'infinity'" in str(caught.value)
    assert lake(t, "shop.notes") != source(shop, "notes")
    assert "infinity" in str(t.list_sources()[0].last_error)
    shop.execute("DELETE FROM days")
    t.ingest()
    assert lake(t, "shop.notes") == source(shop, "notes")
    assert t.list_sources()[0].last_error is None


def test_a_transaction_over_two_tables_is_seen_whole(t: Trickle, shop: Session, dsn: str) -> None:
    """Money moves between two tables while ticks go on: the sum never wavers."""
    shop.execute("CREATE TABLE a (id int PRIMARY KEY, money bigint); CREATE TABLE b (id int PRIMARY KEY, money bigint)")
    shop.execute("INSERT INTO a SELECT g, 100 FROM generate_series(1, 20) g; INSERT INTO b SELECT * FROM a")
    t.attach_postgres("shop", dsn, tables=["a", "b"])
    query = "SELECT SUM(money) AS money FROM (SELECT money FROM shop.a UNION ALL SELECT money FROM shop.b)"
    t.create_stream_table("wealth", query, schedule="1s", refresh_mode="DIFFERENTIAL")
    stop, failures = threading.Event(), []

    def transfer(seed: int) -> None:
        try:
            with psycopg.connect(dsn) as mine:
                while not stop.is_set():
                    mine.execute("UPDATE a SET money = money - 7 WHERE id = %s", (seed,))
                    mine.execute("UPDATE b SET money = money + 7 WHERE id = %s", (20 - seed,))
                    mine.commit()
        except Exception as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    writers = [threading.Thread(target=transfer, args=(seed,)) for seed in (1, 2, 3)]
    for writer in writers:
        writer.start()
    seen: Counter[Any] = Counter()
    for _ in range(6):
        t.refresh_stream_table("wealth")
        seen[t.table("wealth").collect()[0].money] += 1
    stop.set()
    for writer in writers:
        writer.join()
    assert failures == []
    assert seen == {4000: 6}
    t.ingest()
    assert lake(t, "shop.a") == source(shop, "a") != {(g, 100): 1 for g in range(1, 21)}
    assert lake(t, "shop.b") == source(shop, "b")
