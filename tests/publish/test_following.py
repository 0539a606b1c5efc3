"""Publications behind a scheduler, and after any changes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import psycopg
import pytest

from tests.postgres import Postgres
from tests.publish.stories import Session, build, lake, published
from trickle.api import Trickle
from trickle.scheduler.loop import run


@pytest.mark.timeout(120)
def test_the_daemon_publishes_what_it_refreshes_and_outlives_the_server(
    t: Trickle, there: Session, dsn: str, postgres: Postgres
) -> None:
    build(t)
    t.alter_stream_table("amounts", schedule="1s")
    t.publish("amounts", dsn)
    database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    stop = threading.Event()
    daemon = threading.Thread(target=run, args=(t.warehouse, stop))
    daemon.start()
    try:
        t.sql("INSERT INTO orders VALUES (9, 'eve', 1)")
        wait_until(lambda: published(there, "amounts")[("eve",)] == 1)
        postgres.refuse(database)
        t.sql("INSERT INTO orders VALUES (10, 'zoe', 1)")
        wait_until(lambda: t.list_publications()[0].status == "FAILING")
        assert lake(t, "amounts")[("zoe",)] == 1, "the stream table itself goes on"
        postgres.admit(database)
        wait_until(lambda: t.list_publications()[0].status == "CURRENT")
    finally:
        stop.set()
        daemon.join(60)
    with psycopg.connect(dsn) as again:
        assert published(again, "amounts") == lake(t, "amounts")


def wait_until(told: Callable[[], bool], seconds: float = 45) -> None:
    started = time.monotonic()
    while not told():
        assert time.monotonic() - started < seconds, "it did not happen"
        time.sleep(0.1)


def change(dice: random.Random, number: int) -> str:
    name = dice.choice(["'ada'", "'bob'", "'eve'", "NULL"])
    match dice.randrange(5):
        case 0:
            return f"DELETE FROM orders WHERE id % 3 = {dice.randrange(3)}"
        case 1:
            return f"UPDATE orders SET customer = {name} WHERE id % 4 = {dice.randrange(4)}"
        case 2:
            return f"UPDATE orders SET amount = amount + {dice.randrange(3)} WHERE customer <=> {name}"
        case _:
            rows = [f"({number * 10 + i}, {name}, {dice.randrange(9)})" for i in range(dice.randrange(1, 5))]
            return f"INSERT INTO orders VALUES {', '.join(rows)}"


@pytest.mark.timeout(240)
def test_any_story_of_changes(t: Trickle, there: Session, dsn: str) -> None:
    seed = 20261116
    dice = random.Random(seed)
    build(t)
    t.create_stream_table(
        "ranked",
        "SELECT customer, amount, DENSE_RANK() OVER (ORDER BY amount) AS r, amount / 3.0D AS third FROM orders",
        refresh_mode="AUTO",
    )
    for name in ("totals", "amounts", "ranked"):
        t.publish(name, dsn)
    for number in range(1, 6):
        for _ in range(dice.randrange(1, 3)):
            t.sql(change(dice, number * 10 + dice.randrange(10)))
        for name in ("totals", "amounts", "ranked"):
            t.refresh_stream_table(name)
            assert published(there, name) == lake(t, name), f"seed {seed}, step {number}"
    assert [alert.event for alert in t.alerts()] == []
