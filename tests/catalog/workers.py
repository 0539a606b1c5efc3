"""One of several processes at work on a catalog.

Reads a task and its arguments from a line of JSON, prepares, says so, waits for the next line, works, and says what
came of it; until there are no more lines.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeAlias

from trickle.catalog import Catalog, IntentMember, intents, preferences, streams
from trickle.errors import ConcurrentModification

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


TASKS = {task.__name__: task for task in (claim, count_up, finalise, first_open, prefer)}


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
