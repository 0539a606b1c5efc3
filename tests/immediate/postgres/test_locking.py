"""Writers at the same time: nothing is lost, nobody waits for ever, and those who touch other groups do not wait."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from tests.immediate.postgres.conftest import SHOP
from tests.immediate.postgres.story import Story
from tests.postgres import running_postgres
from trickle.algebra.names import TableName
from trickle.delta.plan import OWN
from trickle.delta.stages import split
from trickle.immediate.postgres.locking import touched_buckets
from trickle.operators import Operator
from trickle.sql.build import build_tree
from trickle.sql.rewrites import rewrite

WRITERS = 100
TURNS = 40 if os.environ.get("TRICKLE_POSTGRES_LONG") else 3
QUERIES = {
    "totals": "SELECT customer, sum(amount) AS s, count(*) AS n, min(amount) AS low FROM orders GROUP BY customer",
    "named": "SELECT c.name, o.id, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "regions": (
        "SELECT c.region, count(*) AS n, sum(o.amount) AS s FROM orders o JOIN customers c ON c.id ="
        " o.customer GROUP BY 1"
    ),
    "listed": "SELECT customer, page FROM clicks",
}


def test_a_hundred_transactions_at_once() -> None:
    """None is lost, none waits for ever. A server as it comes does not let as many in."""
    with (
        running_postgres(max_connections=str(WRITERS + 20)) as server,
        server.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(SHOP)
        shop = Story(connection)
        for name, query in QUERIES.items():
            shop.install(name, query)
        failures: Counter[str] = Counter()
        start = threading.Barrier(WRITERS)
        threads = [threading.Thread(target=_write, args=(url, n, start, failures)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        shop.check("all of them")


def _write(url: str, seed: int, start: threading.Barrier, failures: Counter[str]) -> None:
    choices = random.Random(seed)
    with psycopg.connect(url) as connection:
        start.wait(timeout=60)
        for turn in range(TURNS):
            try:
                connection.execute(_statement(choices, seed * TURNS + turn))
                if choices.random() < 0.2:
                    with connection.transaction(force_rollback=True):
                        connection.execute("UPDATE orders SET amount = 0 WHERE id = 1")
                if choices.random() < 0.15:
                    connection.rollback()
                else:
                    connection.commit()
            except psycopg.Error as error:
                failures[type(error).__name__] += 1
                connection.rollback()


def _statement(choices: random.Random, number: int) -> str:
    some, customer = choices.randrange(1, 61), choices.randrange(1, 15)
    return choices.choice(
        (
            f"INSERT INTO orders VALUES ({1000 + number}, {customer}, {number % 17}, NULL, NULL)",
            f"UPDATE orders SET amount = amount + 1 WHERE id = {some}",
            f"UPDATE orders SET customer = {customer} WHERE id = {some}",
            f"DELETE FROM orders WHERE id = {some}",
            f"UPDATE customers SET region = 'r{number % 5}' WHERE id = {customer}",
            f"INSERT INTO clicks VALUES ({customer % 6}, 'p{number % 3}')",
            "DELETE FROM clicks WHERE ctid = (SELECT ctid FROM clicks ORDER BY random() LIMIT 1)",
        )
    )


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url) as connection:
        connection.execute("SET lock_timeout = '300ms'")
        connection.commit()
        yield connection


def test_other_groups_do_not_wait(shop: Story, other: psycopg.Connection) -> None:
    shop.install("totals", QUERIES["totals"])
    with shop.connection.transaction():
        shop.connection.execute("UPDATE orders SET amount = amount + 1 WHERE customer = 3")
        other.execute("UPDATE orders SET amount = amount + 1 WHERE customer = 4")
        other.execute("INSERT INTO orders VALUES (200, 77, 1, NULL, NULL)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("INSERT INTO orders VALUES (201, 3, 1, NULL, NULL)")
        other.rollback()
        other.execute("UPDATE orders SET amount = amount + 1 WHERE customer = 4")
        other.commit()
    shop.check("both")


def test_the_second_writer_of_a_group_sees_the_first(shop: Story, url: str) -> None:
    shop.install("totals", QUERIES["totals"])
    shop.install("new_group", "SELECT note, count(*) AS n FROM orders GROUP BY note")
    with psycopg.connect(url) as second:
        with shop.connection.transaction():
            shop.connection.execute("INSERT INTO orders VALUES (300, 80, 5, NULL, 'fresh')")
            waiting = threading.Thread(target=_insert_and_commit, args=(second,))
            waiting.start()
            waiting.join(timeout=0.3)
            assert waiting.is_alive()
        waiting.join()
    shop.check("both")


def _insert_and_commit(connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO orders VALUES (301, 80, 7, NULL, 'fresh')")
    connection.commit()


def test_a_pair_whose_halves_come_at_the_same_time(shop: Story, url: str) -> None:
    shop.install("named", QUERIES["named"])
    with psycopg.connect(url) as second:
        with shop.connection.transaction():
            shop.connection.execute("INSERT INTO customers VALUES (80, 'eighty', NULL)")
            waiting = threading.Thread(target=_insert_and_commit, args=(second,))
            waiting.start()
            waiting.join(timeout=0.3)
            assert waiting.is_alive()
        waiting.join()
    assert shop.rows("SELECT id FROM named WHERE name = 'eighty'") == [(301,)]


@pytest.mark.parametrize(
    "text, by_group",
    [
        ("SELECT a, count(*) AS n FROM t WHERE b > 0 GROUP BY a", True),
        ("SELECT a + 1 AS c FROM t", True),
        ("SELECT count(*) AS n FROM t", False),
        ("SELECT t.a, u.a AS b FROM t JOIN t u ON t.a = u.b", False),
        ("SELECT n, count(*) AS m FROM (SELECT a, count(*) AS n FROM t GROUP BY a) GROUP BY n", False),
        ("SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM t", False),
        ("SELECT a FROM t ORDER BY a LIMIT 3", False),
    ],
)
def test_what_is_locked_by_group(text: str, by_group: bool) -> None:
    stages = split(_tree(text), lambda _: (), OWN)
    assert (touched_buckets(stages) is not None) is by_group


def _tree(text: str) -> Operator:
    return rewrite(build_tree(text, {TableName.of(["t"]): {"a": "int", "b": "int"}}))
