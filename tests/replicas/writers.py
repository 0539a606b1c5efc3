"""Many who write at once: money moves between accounts and entries, and the sum over both never changes.

Accounts have a key, entries have none and hold duplicates. Every transaction is some transfers, perhaps a savepoint
that is rolled back, and is itself committed or rolled back.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.replicas.test_ingest import Session

ACCOUNTS = 1000
WEALTH = 1000 * ACCOUNTS

SCHEMA = """
CREATE TABLE accounts (id bigint PRIMARY KEY, owner text NOT NULL, money bigint NOT NULL);
CREATE TABLE entries (owner text, money bigint NOT NULL);
ALTER TABLE entries REPLICA IDENTITY FULL"""
QUERIES = {
    "wealth": (
        "SELECT SUM(money) AS money FROM"
        " (SELECT money FROM {0}.accounts UNION ALL SELECT money FROM {0}.entries) AS both_kinds"
    ),
    "owners": (
        "SELECT a.owner, COUNT(*) AS n, SUM(a.money) AS money, MAX(e.most) AS most FROM {0}.accounts AS a"
        " LEFT JOIN (SELECT owner, MAX(money) AS most FROM {0}.entries GROUP BY owner) AS e ON a.owner = e.owner"
        " GROUP BY a.owner"
    ),
}


def fill(shop: Session) -> None:
    """The tables, and who owns what at first."""
    shop.execute(SCHEMA)
    shop.execute("INSERT INTO accounts SELECT g, 'o' || g %% 20, 1000 FROM generate_series(1, %s) g", (ACCOUNTS,))


@contextmanager
def writing(dsn: str, count: int) -> Iterator[list[int]]:
    """So many writers for the block; the list is filled with the number of transactions that each of them committed."""
    stop = threading.Event()
    done: list[int] = []
    failures: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            done.append(_write(dsn, random.Random(seed), stop))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def _write(dsn: str, chance: random.Random, stop: threading.Event) -> int:
    committed = 0
    with psycopg.connect(dsn, autocommit=True) as mine:
        while not stop.is_set():
            undone = chance.random() < 0.15
            try:
                with mine.transaction(force_rollback=undone):
                    for _ in range(chance.randint(1, 4)):
                        _step(mine, chance)
                    with mine.transaction(force_rollback=chance.random() < 0.4):
                        _step(mine, chance)
                    time.sleep(chance.choice((0, 0, 0, 0.002, 0.05)))
            except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                continue
            committed += not undone
    return committed


def _step(mine: psycopg.Connection, chance: random.Random) -> None:
    """Move money: between accounts, into an entry and back, with an account that comes or goes."""
    amount, one, other = chance.randint(1, 9), *sorted(chance.sample(range(1, ACCOUNTS + 1), 2))
    owner = f"o{chance.randrange(25)}"
    kind = chance.randrange(5)
    if kind == 0:
        mine.execute("UPDATE accounts SET money = money + %s WHERE id IN (%s, %s)", (0, one, other))
        _pay(mine, one, amount, owner)
    elif kind == 1:
        _pay(mine, other, amount, owner)
        _pay(mine, other, amount, owner)
    elif kind == 2:
        # An account goes, and what it had is an entry.
        mine.execute(
            "WITH gone AS (DELETE FROM accounts WHERE id = %s RETURNING owner, money)"
            " INSERT INTO entries SELECT owner, money FROM gone",
            (one,),
        )
    elif kind == 3:
        # Entries go, and what they were is a new account, or comes to one that is there.
        mine.execute(
            "WITH gone AS (DELETE FROM entries WHERE ctid IN"
            " (SELECT ctid FROM entries ORDER BY random() LIMIT 3 FOR UPDATE SKIP LOCKED) RETURNING money)"
            " INSERT INTO accounts SELECT %s, %s, coalesce(sum(money), 0) FROM gone"
            " ON CONFLICT (id) DO UPDATE SET money = accounts.money + excluded.money, owner = excluded.owner",
            (one, owner),
        )
    else:
        # A key changes, if the new one is free.
        mine.execute(
            "UPDATE accounts SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM accounts WHERE id = %s)",
            (other, one, other),
        )


def _pay(mine: psycopg.Connection, account: int, amount: int, owner: str) -> None:
    mine.execute(
        "WITH paid AS (UPDATE accounts SET money = money - %s WHERE id = %s RETURNING 1)"
        " INSERT INTO entries SELECT %s, %s FROM paid",
        (amount, account, owner, amount),
    )
