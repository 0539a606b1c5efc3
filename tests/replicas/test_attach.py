"""Attaching: which database it is, and what is left when it fails."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres import Postgres
from tests.replicas.test_ingest import Session, lake, source
from trickle.api import Trickle
from trickle.catalog import databases
from trickle.errors import ConcurrentModification, InvalidOption, TrickleError
from trickle.replicas import attach
from trickle.sources.postgres import buffers
from trickle.sources.postgres.buffers import TriggerCapture


def test_another_database_under_the_same_name(t: Trickle, shop: Session, dsn: str, postgres: Postgres) -> None:
    t.attach_postgres("shop", dsn, tables=["orders"])
    with postgres.database() as elsewhere:
        with psycopg.connect(elsewhere, autocommit=True) as other:
            other.execute("CREATE TABLE things (id int)")
        with pytest.raises(InvalidOption, match="another database"):
            t.attach_postgres("Shop", elsewhere, tables=["things"])
    shop.execute("DELETE FROM orders WHERE id = 1")
    t.ingest()
    assert [row.status for row in t.list_sources()] == ["ACTIVE"]
    assert lake(t, "shop.orders") == source(shop, "orders")


def test_an_address_is_kept_when_it_worked(t: Trickle, shop: Session, dsn: str) -> None:
    t.attach_postgres("shop", dsn, tables=["orders"])
    shop.execute("CREATE TABLE days (d date); INSERT INTO days VALUES ('infinity')")
    longer = psycopg.conninfo.make_conninfo(dsn, connect_timeout="3")
    with pytest.raises(TrickleError):
        t.attach_postgres("shop", longer, tables=["days"])
    with t.warehouse.catalog.read() as tx:
        assert databases.get(tx, "shop").dsn == dsn
    t.attach_postgres("shop", longer, tables=["notes"])
    with t.warehouse.catalog.read() as tx:
        assert databases.get(tx, "shop").dsn == longer


def test_a_name_that_is_taken_leaves_nothing(t: Trickle, shop: Session, dsn: str) -> None:
    t.sql("CREATE TABLE shop.orders (id int)")
    with pytest.raises(TrickleError):
        t.attach_postgres("shop", dsn, tables=["notes", "orders"])
    assert t.list_sources() == []
    with t.warehouse.catalog.read() as tx:
        assert databases.find(tx, "shop") is None
    assert shop.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)


def test_what_cannot_be_disarmed_stays_known(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TriggerCapture, "loaded", full)
        patch.setattr(TriggerCapture, "disarm", full)
        with pytest.raises(TrickleError, match="no room left"):
            t.attach_postgres("shop", dsn)
    assert {row.status for row in t.list_sources()} == {"LOADING"}
    t.detach("shop")
    assert shop.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)


def test_a_table_that_is_in_use_is_asked_for_again(
    t: Trickle, shop: Session, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers are never held up for long, and have their turn between two attempts."""
    monkeypatch.setattr(buffers, "LOCK_TIMEOUT_MS", 50)
    pauses: list[float] = []
    with psycopg.connect(dsn) as writer:
        writer.execute("INSERT INTO orders VALUES (900, 'late', 1, 1)")

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                writer.commit()

        monkeypatch.setattr(attach, "sleep", pause)
        t.attach_postgres("shop", dsn, cdc_mode="trigger")
        assert len(pauses) == 2
        assert lake(t, "shop.orders") == source(shop, "orders")
        t.detach("shop")
        pauses.clear()
        writer.execute("INSERT INTO orders VALUES (901, 'later', 1, 1)")
        pauses.extend([0.0] * 2)
        with pytest.raises(ConcurrentModification):
            t.attach_postgres("shop", dsn, cdc_mode="trigger")
        assert len(pauses) == 2 + attach.ATTEMPTS - 1
    assert t.list_sources() == []
