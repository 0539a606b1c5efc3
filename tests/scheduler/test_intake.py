from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.conftest import dsn as dsn
from trickle.api import Trickle, connect
from trickle.engine import Engine
from trickle.scheduler.intake import Listener
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
