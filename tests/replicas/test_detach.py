"""Letting go of a database: what captures at the source goes first, and what stops half way can be repeated."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Postgres
from tests.replicas.test_wal import Session, at_the_source, check
from trickle.api import Trickle
from trickle.errors import ConcurrentModification, SourceUnreachable
from trickle.postgres.connect import Connection, connected
from trickle.replicas.attach import attach_postgres, detach
from trickle.replicas.ingest import ingest
from trickle.replicas.locks import one_at_a_time
from trickle.sources.postgres import buffers, slots


@pytest.fixture
def dsn(logical_postgres: Postgres) -> Iterator[str]:
    """A database on a server whose WAL can be read."""
    with logical_postgres.database() as url:
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = current_database()"
            )


def test_a_reader_in_the_way_of_the_triggers(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "LOCK_TIMEOUT_MS", 100)
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="trigger")
    with psycopg.connect(dsn) as reader:
        reader.execute("SELECT count(*) FROM orders")
        with pytest.raises(ConcurrentModification):
            detach(t.warehouse, "shop")
    assert len(t.list_sources()) == 2, "the catalog knows what is armed"
    shop.execute("DELETE FROM notes; INSERT INTO notes VALUES ('between')")
    ingest(t.warehouse)
    check(t, shop, "orders", "notes")
    detach(t.warehouse, "shop")
    assert t.list_sources() == []
    assert at_the_source(shop) == (0, 0, 0)


def test_a_slot_that_somebody_uses(t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")

    def in_use(_connection: Connection, name: str) -> None:
        raise ConcurrentModification(f"another session uses the replication slot {name!r}")

    with monkeypatch.context() as patch:
        patch.setattr(slots, "drop_slot", in_use)
        with pytest.raises(ConcurrentModification):
            detach(t.warehouse, "shop")
    assert at_the_source(shop)[:2] == (1, 1)
    detach(t.warehouse, "shop")
    assert at_the_source(shop) == (0, 0, 0)


def test_a_slot_without_replicas_goes_by_its_name(t: Trickle, shop: Session, dsn: str) -> None:
    """A process that died between two steps may have left a database of which nothing is here."""
    (replica,) = attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    with t.warehouse.catalog.write() as tx:
        tx.connection().exec_driver_sql(f"DELETE FROM replicas WHERE relation_id = {replica.relation.id}")
    detach(t.warehouse, "shop")
    assert at_the_source(shop) == (0, 0, 0)


def test_a_server_that_is_away(t: Trickle, shop: Session, dsn: str, logical_postgres: Postgres) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    logical_postgres.refuse(name)
    with pytest.raises(SourceUnreachable):
        detach(t.warehouse, "shop")
    assert len(t.list_sources()) == 1
    logical_postgres.admit(name)
    detach(t.warehouse, "shop")
    with psycopg.connect(dsn, autocommit=True) as again:
        assert at_the_source(again) == (0, 0, 0)


def test_an_ingest_under_way_is_waited_for(t: Trickle, shop: Session, dsn: str) -> None:
    attach_postgres(t.warehouse, "shop", dsn, tables=["orders"], cdc_mode="wal")
    going = threading.Thread(target=detach, args=(t.warehouse, "shop"))
    with connected(dsn) as connection, one_at_a_time(connection, "shop"):
        going.start()
        going.join(1)
        assert going.is_alive()
        assert at_the_source(shop)[:2] == (1, 1)
        assert len(t.list_sources()) == 1
    going.join(30)
    assert t.list_sources() == []
    assert at_the_source(shop) == (0, 0, 0)


def test_some_tables_of_several(t: Trickle, shop: Session, dsn: str) -> None:
    shop.execute("ALTER TABLE notes REPLICA IDENTITY FULL")
    attach_postgres(t.warehouse, "shop", dsn, cdc_mode="wal")
    detach(t.warehouse, "shop", tables="notes")
    shop.execute("DELETE FROM notes; DELETE FROM orders WHERE id = 1")
    ingest(t.warehouse)
    check(t, shop, "orders")
    assert at_the_source(shop)[:2] == (1, 1)
    detach(t.warehouse, "shop")
    assert at_the_source(shop) == (0, 0, 0)
