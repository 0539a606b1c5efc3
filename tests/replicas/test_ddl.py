"""What becomes of a replica when its table is changed."""

from __future__ import annotations

import psycopg
import pytest

from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.postgres.tables import SourceTable
from trickle.sources.postgres.buffers import TriggerCapture


def statuses(t: Trickle) -> dict[str, tuple[str, str | None]]:
    return {row.name: (row.status, row.problem) for row in t.list_sources()}


def test_an_added_column_is_not_there_until_it_is_used(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute("ALTER TABLE notes ADD COLUMN more int DEFAULT 5")
    shop.execute("INSERT INTO notes VALUES ('later', 6)")
    t.ingest()
    assert t.table("shop.notes").columns == ["body"]
    assert lake(t, "shop.notes")["later",] == 1


def test_by_default_the_source_refuses_what_would_break_a_replica(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        shop.execute("ALTER TABLE orders DROP COLUMN amount")
    shop.execute("ALTER TABLE orders DROP COLUMN amount CASCADE")
    shop.execute("INSERT INTO orders VALUES (900, 'x', 1); INSERT INTO notes VALUES ('goes on')")
    results = {result.name: result.problem for result in t.ingest()}
    assert results["shop.orders"] == "column 'amount' was dropped"
    assert statuses(t)["shop.orders"] == ("BROKEN", "column 'amount' was dropped")
    assert len(lake(t, "shop.orders")) == 50, "its readers see what they saw"
    assert lake(t, "shop.notes") == source(shop, "notes")
    assert t.ingest() == []


@pytest.mark.parametrize(
    "ddl, columns",
    [
        ("ALTER TABLE orders DROP COLUMN rate", ["id", "customer", "amount"]),
        ("ALTER TABLE orders ALTER COLUMN amount TYPE text", ["id", "customer", "amount", "rate"]),
        ("ALTER TABLE orders RENAME COLUMN customer TO client", ["id", "client", "amount", "rate"]),
    ],
)
def test_or_the_replica_is_loaded_anew(t: Trickle, shop: Session, dsn: str, ddl: str, columns: list[str]) -> None:
    t.sql("SET trickle.on_source_ddl = 'reinitialize'")
    t.attach_postgres("shop", dsn)
    shop.execute("INSERT INTO orders VALUES (800, 'before', 1, 1)")
    shop.execute(ddl)
    shop.execute("UPDATE orders SET id = id + 1000 WHERE id < 5")
    t.ingest()
    assert statuses(t)["shop.orders"] == ("ACTIVE", None)
    assert t.table("shop.orders").columns == columns
    assert lake(t, "shop.orders") == source(shop, "orders")
    shop.execute("DELETE FROM orders WHERE id > 1000")
    t.ingest()
    assert lake(t, "shop.orders") == source(shop, "orders")


def test_a_renamed_table_is_followed(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute("CREATE SCHEMA old; ALTER TABLE notes RENAME TO remarks; ALTER TABLE remarks SET SCHEMA old")
    shop.execute("INSERT INTO old.remarks VALUES ('moved')")
    t.ingest()
    assert lake(t, "shop.notes") == source(shop, "old.remarks")
    assert "old.remarks" in [row.source for row in t.list_sources()]


def test_a_dropped_table_leaves_what_was_there(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    t.create_stream_table("bodies", "SELECT body, COUNT(*) AS n FROM shop.notes GROUP BY body")
    before = lake(t, "bodies")
    shop.execute("DROP TABLE notes; DELETE FROM orders WHERE id < 10")
    results = {result.name: result.problem for result in t.ingest()}
    assert results["shop.notes"] == "its table was dropped"
    assert lake(t, "bodies") == before
    assert lake(t, "shop.orders") == source(shop, "orders")
    t.refresh_stream_table("bodies")
    assert lake(t, "bodies") == before
    t.detach("shop", cascade=True)


def test_a_partition_that_comes_is_noticed(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("CREATE TABLE p (id int, part int) PARTITION BY LIST (part)")
    shop.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); INSERT INTO p VALUES (1, 1)")
    t.attach_postgres("shop", dsn, tables=["p"])
    shop.execute("CREATE TABLE p2 (id int, part int); INSERT INTO p2 VALUES (7, 2), (8, 2)")
    shop.execute("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2)")
    t.ingest()
    assert lake(t, "shop.p") == source(shop, "p") == {(1, 1): 1, (7, 2): 1, (8, 2): 1}
    shop.execute("INSERT INTO p2 VALUES (9, 2); ALTER TABLE p DETACH PARTITION p1")
    t.ingest()
    assert lake(t, "shop.p") == source(shop, "p")


def test_triggers_that_somebody_disabled_are_put_back(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute("ALTER TABLE notes DISABLE TRIGGER ALL")
    shop.execute("INSERT INTO notes VALUES ('unseen')")
    assert {row.source: row.state for row in t.check_cdc_health()}["public.notes"] == "CRITICAL"
    assert t.rebuild_cdc_triggers() == ["shop.notes"]
    t.ingest()
    assert lake(t, "shop.notes") == source(shop, "notes")
    assert t.rebuild_cdc_triggers() == []


def test_putting_triggers_back_is_cut_off(t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t.attach_postgres("shop", dsn)
    shop.execute("INSERT INTO notes VALUES ('waits in the buffer'); ALTER TABLE notes DISABLE TRIGGER ALL")
    shop.execute("INSERT INTO notes VALUES ('unseen')")
    real = TriggerCapture.arm

    def die(self: TriggerCapture, table: SourceTable) -> None:
        real(self, table)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TriggerCapture, "arm", die)
        with pytest.raises(KeyboardInterrupt):
            t.rebuild_cdc_triggers()
    t.ingest()
    assert lake(t, "shop.notes") == source(shop, "notes")
