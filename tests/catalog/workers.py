"""One of several processes at work on a catalog.

Reads a task and its arguments from a line of JSON, prepares, says so, waits for the next line, works, and says what
came of it; until there are no more lines.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from trickle.catalog import Catalog, IntentMember, intents, leases, preferences, streams, watermarks
from trickle.catalog.leases import LeaseLost
from trickle.errors import ConcurrentModification, InvalidOption

# Yields once, when everything is prepared; returns the answer.
Task: TypeAlias = Generator[None, None, object]


@contextmanager
def opened(url: str) -> Generator[Catalog, None, None]:
    catalog = Catalog.open(url)
    yield catalog
    catalog.close()


def first_open(url: str) -> Task:
    """Open a catalog that is not there yet; answers the warehouse id that it got."""
    yield
    with opened(url) as catalog:
        return catalog.meta().warehouse_id


def count_up(url: str, relation_id: str, times: str) -> Task:
    """Raise the refresh number one by one; answers how often."""
    with opened(url) as catalog:
        yield
        for _ in range(int(times)):
            with catalog.write() as tx:
                table = streams.lock(tx, int(relation_id))
                streams.update(tx, table.relation.id, now=datetime.now(UTC), refresh_number=table.refresh_number + 1)
        return int(times)


def claim(url: str, relation_id: str) -> Task:
    """Write an intent for a table; answers whether this process was the one that could."""
    with opened(url) as catalog:
        yield
        try:
            with catalog.write() as tx:
                intents.add(tx, [IntentMember(int(relation_id), 0, None, 1, None)], datetime.now(UTC))
        except ConcurrentModification:
            return False
        return True


def finalise(url: str, intent_id: str) -> Task:
    """Remove an intent; answers whether this process was the one that did."""
    with opened(url) as catalog:
        yield
        with catalog.write() as tx:
            return intents.remove(tx, intent_id)


def prefer(url: str, name: str) -> Task:
    """Store a setting that the others store too; answers the value seen afterwards."""
    with opened(url) as catalog:
        yield
        with catalog.write() as tx:
            preferences.put(tx, name, "5", datetime.now(UTC))
        with catalog.read() as tx:
            return preferences.stored(tx)[name]


def hold(url: str, seconds: str) -> Task:
    """Take and release a lease for a while; answers each token with the times between which it was held."""
    with opened(url) as catalog:
        yield
        held, me = [], f"holder {random.random()}"
        give_up = time.monotonic() + float(seconds)
        while time.monotonic() < give_up:
            with catalog.write() as tx:
                lease = leases.acquire(tx, "scheduler", me, timedelta(seconds=60), datetime.now(UTC))
            if lease is None:
                time.sleep(0.002)
                continue
            since = time.monotonic()
            time.sleep(0.005)
            held.append((lease.token, since, time.monotonic()))
            with catalog.write() as tx:
                leases.release(tx, "scheduler", lease.token, datetime.now(UTC))
        return held


def count_fenced(url: str, times: str) -> Task:
    """Count up under a lease that anybody may take at any moment; answers how often that worked, and how often not.

    Nothing but the fence keeps two holders from reading the same number.
    """
    with opened(url) as catalog:
        yield
        counted = fenced_off = 0
        me = f"holder {random.random()}"
        while counted < int(times):
            with catalog.write() as tx:
                lease = leases.acquire(tx, "scheduler", me, timedelta(0), datetime.now(UTC))
            if lease is None:
                continue
            time.sleep(random.uniform(0, 0.003))
            try:
                with catalog.write() as tx:
                    leases.check(tx, "scheduler", lease.token)
                    number = int(preferences.stored(tx).get("counter", "0"))
                    preferences.put(tx, "counter", str(number + 1), datetime.now(UTC))
                counted += 1
            except LeaseLost:
                fenced_off += 1
        return counted, fenced_off


def advance(url: str, source_id: str, times: str) -> Task:
    """Advance a watermark by whole seconds in no order; answers the greatest, and what was seen after each try."""
    with opened(url) as catalog:
        yield
        start, source = datetime(2026, 1, 1, tzinfo=UTC), int(source_id)
        said, seen = random.sample(range(100_000), int(times)), []
        for second in said:
            try:
                with catalog.write() as tx:
                    watermarks.advance(
                        tx, source, start + timedelta(seconds=second), position=None, by=None, now=datetime.now(UTC)
                    )
            except InvalidOption:
                pass
            with catalog.read() as tx:
                found = watermarks.find(tx, source)
            assert found is not None
            seen.append((found.watermark - start).total_seconds())
        return max(said), seen


TASKS = {task.__name__: task for task in (advance, claim, count_fenced, count_up, finalise, first_open, hold, prefer)}


def say(**answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def work(name: str, *arguments: str) -> None:
    task = TASKS[name](*arguments)
    next(task)
    say(said="ready")
    sys.stdin.readline()
    try:
        next(task)
    except StopIteration as end:
        say(said=end.value)


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            work(*json.loads(line))
        except Exception:  # noqa: BLE001  (the test shows it; the process stays for the next one)
            say(failed=traceback.format_exc())
