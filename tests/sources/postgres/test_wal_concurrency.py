"""Many who write while somebody reads, loads and dies: positions are consistent, and nothing is lost or comes twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from tests.sources.postgres.small_lake import SmallLake

WRITERS = 6
SAMPLES = 12
ACCOUNTS = 20


def write(dsn: str, seed: int, done: threading.Event, failures: list[BaseException]) -> None:
    """Transfers between both tables that never change the sum over both; some are undone, some in part."""
    chance = random.Random(seed)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"SET synchronous_commit = {chance.choice(['on', 'off'])}")
            while not done.is_set():
                # One more way to be undone.
                with suppress(psycopg.errors.DeadlockDetected):
                    work(connection, chance)
    except BaseException as error:  # noqa: BLE001  (a thread's failure is the test's)
        failures.append(error)


def work(connection: psycopg.Connection, chance: random.Random) -> None:
    with connection.transaction(force_rollback=chance.random() < 0.2):
        transfer(connection, chance)
        with connection.transaction(force_rollback=chance.random() < 0.5):
            transfer(connection, chance)
        time.sleep(chance.choice([0, 0, 0.001, 0.02]))


def transfer(connection: psycopg.Connection, chance: random.Random) -> None:
    amount, number = chance.randrange(1, 10), chance.randrange(10**9)
    connection.execute("UPDATE accounts SET amount = amount - %s WHERE id = %s", (amount, chance.randint(1, ACCOUNTS)))
    connection.execute("INSERT INTO entries VALUES (%s, %s)", (number, amount))
    if chance.random() < 0.3:
        connection.execute("UPDATE entries SET number = -1 WHERE number = %s", (number,))


@contextmanager
def writers(dsn: str, failures: list[BaseException]) -> Iterator[None]:
    done = threading.Event()
    threads = [threading.Thread(target=write, args=(dsn, seed, done, failures)) for seed in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def total(lake: SmallLake) -> int:
    return sum(row[-1] * count for rows in lake.rows.values() for row, count in rows.items())


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_the_sum_over_two_tables_never_wavers(
    lake: SmallLake, user: psycopg.Connection, wal_dsn: str, identity: str
) -> None:
    user.execute("CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL)")
    user.execute(f"ALTER TABLE accounts REPLICA IDENTITY {identity}")
    user.execute("CREATE TABLE entries (number int, amount int); ALTER TABLE entries REPLICA IDENTITY FULL")
    user.execute("INSERT INTO accounts SELECT n, 1000 FROM generate_series(1, %s) n", (ACCOUNTS,))
    failures: list[BaseException] = []
    chance = random.Random(0)
    with writers(wal_dsn, failures):
        time.sleep(0.3)
        # The tables are loaded one after the other, each as of its own moment.
        lake.attach("accounts", meanwhile=lambda: time.sleep(0.2))
        lake.attach("entries", meanwhile=lambda: time.sleep(0.2))
        for _ in range(SAMPLES):
            # Now and then the process dies between the lake and the slot.
            lake.ingest(forget=chance.random() < 0.5)
            assert total(lake) == 1000 * ACCOUNTS
            time.sleep(0.1)
    assert failures == []
    lake.ingest()
    lake.check()
