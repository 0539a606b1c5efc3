"""Publications of IMMEDIATE stream tables come after the statement, and what becomes of them is no part of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

import trickle
from tests.immediate.lake.checking import agree
from tests.postgres import Postgres
from tests.postgres.conftest import dsn as dsn
from tests.publish.stories import published
from tests.scenarios.story import contents
from trickle.api import Trickle
from trickle.engine import Engine
from trickle.errors import SourceUnreachable
from trickle.publish.steps import Step, observe


@pytest.fixture
def shop(t: Trickle, dsn: str) -> Iterator[Trickle]:
    t.sql("CREATE TABLE orders (id INT, amount INT); INSERT INTO orders VALUES (1, 10)")
    t.create_stream_table("total", "SELECT sum(amount) AS total FROM orders", refresh_mode="IMMEDIATE")
    t.publish("total", dsn)
    yield t
    observe(None)


def test_a_stream_table_is_dropped_while_its_publication_fails(shop: Trickle, engine: Engine) -> None:
    """What is said of the failure cannot name the stream table by its id any more."""
    shop.create_stream_table("most", "SELECT max(amount) AS most FROM orders", refresh_mode="IMMEDIATE")
    with trickle.connect(shop.warehouse.root.uri, spark=engine.spark) as other:

        def watch(step: Step) -> None:
            if step is Step.READ:
                observe(None)
                other.sql("DROP STREAM TABLE total CASCADE")
                raise SourceUnreachable("the server went away")

        observe(watch)
        assert shop.sql("UPDATE orders SET amount = amount + 1").rows_inserted == 1  # type: ignore[union-attr] # DML
    assert contents(shop, "orders") == [(1, 11)]
    agree(shop)
    (alert,) = shop.alerts()
    assert alert.event == "stale_data"
    assert '"stream_table": "total"' in str(alert.payload)


@pytest.mark.timeout(120)
def test_a_server_that_hangs_holds_up_its_own_statement_only(shop: Trickle, dsn: str) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def watch(step: Step) -> None:
        if step is Step.READ and not hangs.is_set():
            hangs.set()
            goes_on.wait(60)

    observe(watch)
    first = threading.Thread(target=shop.sql, args=("INSERT INTO orders VALUES (2, 20)",))
    first.start()
    assert hangs.wait(60)
    second = threading.Thread(target=shop.sql, args=("INSERT INTO orders VALUES (3, 30)",))
    second.start()
    second.join(30)
    was_held_up = second.is_alive()
    goes_on.set()
    for thread in (first, second):
        thread.join(60)
    assert not was_held_up
    agree(shop)
    with psycopg.connect(dsn) as there:
        assert published(there, "total") == {(60,): 1}


def test_a_server_that_is_gone_is_not_asked_by_every_statement(
    shop: Trickle, dsn: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trickle.publish.following._FIRST_REST", 600.0)
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    postgres.refuse(database)
    shop.sql("INSERT INTO orders VALUES (2, 20)")
    postgres.admit(database)
    shop.sql("INSERT INTO orders VALUES (3, 30)")
    assert shop.list_publications()[0].status == "FAILING", "it is left alone for a while"
    agree(shop)
    shop.refresh_stream_table("total", force=True)
    assert shop.list_publications()[0].status == "CURRENT", "who asks for it need not wait"
    with psycopg.connect(dsn) as there:
        assert published(there, "total") == {(60,): 1}
