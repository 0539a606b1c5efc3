"""Replicas and stream tables under many writers, with a capture process that is killed again and again.

Short in the suite; ``make test-postgres-long`` has 100 writers for a minute and ten kills.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres import running_postgres
from tests.replicas.test_ingest import Session, lake, source
from tests.replicas.writers import QUERIES, WEALTH, fill, writing
from trickle.api import Trickle
from trickle.errors import ConcurrentModification
from trickle.replicas.ingest import ingest
from trickle.sources.postgres.buffers import TriggerCapture

ROOT = Path(__file__).parents[2]
LONG = bool(os.environ.get("TRICKLE_POSTGRES_LONG"))
WRITERS, SECONDS, KILLS = (100, 60, 10) if LONG else (8, 5, 2)
ATTEMPTS = 20


@pytest.fixture(scope="module")
def crowded() -> Iterator[str]:
    """A server that many may use at once."""
    with running_postgres(wal_level="logical", max_connections="200", max_replication_slots="10") as server:
        yield server.url("postgres")


@pytest.fixture
def dsn(crowded: str) -> str:
    """A database of its own, in place of the one that the other tests have."""
    with psycopg.connect(crowded, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bank WITH (FORCE)")
        connection.execute("CREATE DATABASE bank")
    return crowded.replace("/postgres?", "/bank?")


@contextmanager
def following(folder: str) -> Iterator[subprocess.Popen[str]]:
    """A capture process that has begun to ingest; killed at the end."""
    command = [sys.executable, "-m", "tests.replicas.follower", folder]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline().strip(), process.stderr.read()
            yield process
        finally:
            process.kill()


def attach(t: Trickle, dsn: str, mode: str) -> None:
    """Attach while all of them write: who waits for their locks may have to try again."""
    for _ in range(ATTEMPTS):
        with suppress(ConcurrentModification):
            t.attach_postgres("bank", dsn, cdc_mode=mode)
            return
        assert t.list_sources() == []
    pytest.fail("no moment without a long transaction")


def answers(shop: Session, name: str) -> Counter[tuple[Any, ...]]:
    found = shop.execute(QUERIES[name].format("public").encode())
    return Counter(tuple(row) for row in found)


def exact_sample(t: Trickle, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas at a position equal the source as the snapshot sees it that the position is."""
    with psycopg.connect(dsn) as held, monkeypatch.context() as patch:
        held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def position(_self: TriggerCapture) -> str:
            found = held.execute("SELECT pg_current_snapshot()::text").fetchone()
            assert found is not None
            return f"trigger:{found[0]}"

        patch.setattr(TriggerCapture, "position", position)
        ingest(t.warehouse)
        for name in ("accounts", "entries"):
            assert lake(t, f"bank.{name}") == source(held, name), f"{name} at a sampled position"


def sample(t: Trickle) -> None:
    """A stream table over both tables, at whatever position: no transaction is seen in part."""
    t.refresh_stream_table("wealth")
    assert [row.money for row in t.table("wealth").collect()] == [WEALTH]


@pytest.mark.timeout(1800 if LONG else 400)
@pytest.mark.parametrize("mode", ["trigger", "wal"])
def test_many_writers_and_a_capture_process_that_is_killed(
    t: Trickle, dsn: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    with psycopg.connect(dsn, autocommit=True) as shop:
        fill(shop)
        kills = 0
        with writing(dsn, WRITERS) as done:
            attach(t, dsn, mode)
            for name, query in QUERIES.items():
                t.create_stream_table(name, query.format("bank"), refresh_mode="DIFFERENTIAL")
            end = time.monotonic() + SECONDS
            while kills < KILLS or time.monotonic() < end:
                with following(t.warehouse.root.uri):
                    time.sleep(chance.random() * (2 if LONG else 0.5))
                kills += 1
                sample(t)
                if mode == "trigger":
                    exact_sample(t, dsn, monkeypatch)
        assert sum(done) > WRITERS, "they did write"
        t.ingest()
        for name in ("accounts", "entries"):
            assert lake(t, f"bank.{name}") == source(shop, name), f"{name} at the end"
        for name in QUERIES:
            t.refresh_stream_table(name)
            assert lake(t, name) == answers(shop, name), f"{name} at the end"
        sys.stdout.write(f"{mode}: {sum(done)} transactions committed, {kills} kills\n")
        t.detach("bank", cascade=True)
