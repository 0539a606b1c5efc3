from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.postgres.conftest import dsn as dsn
from trickle.api import Trickle, connect
from trickle.engine import Engine
from trickle.scheduler.intake import Listener, take_in
from trickle.scheduler.lease import Leadership
from trickle.scheduler.state import Memory
from trickle.scheduler.wake import CAPTURED, Wake


@pytest.fixture
def t(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    opened = connect(tmp_path / "warehouse", spark=engine.spark, settings={"scheduler_interval_ms": 60_000})
    yield opened
    opened.warehouse.catalog.close()


def test_a_notice_rings_the_bell(dsn: str) -> None:
    wake = Wake()
    listener = Listener(wake)
    listener.listen({1: dsn})
    try:
        assert wake.wait(20) == {CAPTURED}, "it looks once when it begins to listen"
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("NOTIFY trickle")
        assert wake.wait(20) == {CAPTURED}
    finally:
        listener.close()


def test_a_database_in_which_others_work_does_not_hold_up_every_tick(t: Trickle, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as shop:
        shop.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int); INSERT INTO orders VALUES (1, 1)")
        t.attach_postgres("shop", dsn, cdc_mode="trigger")
        t.create_stream_table("copied", "SELECT id FROM shop.orders", refresh_mode="IMMEDIATE")
        leader, memory = Leadership.take(t.warehouse, timedelta(minutes=5)), Memory()
        assert leader is not None
        with leader, psycopg.connect(dsn) as busy:
            # Its removal is left to others, as somebody reads it.
            busy.execute("SELECT FROM copied")
            t.drop_stream_table("copied")
            take_in(t.warehouse, memory, leader)
            started = time.monotonic()
            take_in(t.warehouse, memory, leader)
            assert time.monotonic() - started < 4, "it waited again"
            assert memory.settling.resting
            assert not memory.resting, "what is captured is taken in all the same"
            busy.rollback()
            memory.settling.resting.clear()
            take_in(t.warehouse, memory, leader)
        assert shop.execute("SELECT to_regclass('public.copied')").fetchone() == (None,)


def test_the_daemon_wakes_when_postgresql_is_written_to(t: Trickle, dsn: str) -> None:
    """Its own interval is a minute: what is fresh sooner came by a notice."""
    with psycopg.connect(dsn, autocommit=True) as shop:
        shop.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int); INSERT INTO orders VALUES (1, 1)")
        t.attach_postgres("shop", dsn)
        t.create_stream_table("total", "SELECT SUM(amount) AS total FROM shop.orders", schedule="1s")
        stop = threading.Event()
        daemon = threading.Thread(target=t.run, args=(stop,))
        daemon.start()
        try:
            time.sleep(3)
            shop.execute("INSERT INTO orders VALUES (2, 41)")
            until = time.monotonic() + 40
            while time.monotonic() < until and t.table("total").collect()[0].total != 42:
                time.sleep(0.2)
            assert t.table("total").collect()[0].total == 42
        finally:
            stop.set()
            daemon.join()
