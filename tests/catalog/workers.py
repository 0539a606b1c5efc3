"""What one of several processes does to a catalog: ``python workers.py task url ...``.

It says "ready", waits for a line, works, and prints its answer as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from trickle.catalog import Catalog, IntentMember, intents, preferences, streams
from trickle.errors import ConcurrentModification


def _wait_for_the_others() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def first_open(url: str) -> str:
    """Open a catalog that is not there yet; answers the warehouse id that it got."""
    _wait_for_the_others()
    catalog = Catalog.open(url)
    warehouse = catalog.meta().warehouse_id
    catalog.close()
    return warehouse


def count_up(url: str, relation_id: str, times: str) -> int:
    """Raise the refresh number one by one; answers how often."""
    catalog = Catalog.open(url)
    _wait_for_the_others()
    for _ in range(int(times)):
        with catalog.write() as tx:
            table = streams.lock(tx, int(relation_id))
            streams.update(tx, table.relation.id, now=datetime.now(UTC), refresh_number=table.refresh_number + 1)
    catalog.close()
    return int(times)


def claim(url: str, relation_id: str) -> bool:
    """Write an intent for a table; answers whether this process was the one that could."""
    catalog = Catalog.open(url)
    _wait_for_the_others()
    try:
        with catalog.write() as tx:
            intents.add(tx, [IntentMember(int(relation_id), 0, None, 1, None)], datetime.now(UTC))
    except ConcurrentModification:
        return False
    finally:
        catalog.close()
    return True


def finalise(url: str, intent_id: str) -> bool:
    """Remove an intent; answers whether this process was the one that did."""
    catalog = Catalog.open(url)
    _wait_for_the_others()
    with catalog.write() as tx:
        removed = intents.remove(tx, intent_id)
    catalog.close()
    return removed


def prefer(url: str, name: str) -> str:
    """Store a setting that the others store too; answers the value seen afterwards."""
    catalog = Catalog.open(url)
    _wait_for_the_others()
    with catalog.write() as tx:
        preferences.put(tx, name, "5", datetime.now(UTC))
    with catalog.read() as tx:
        seen = preferences.stored(tx)[name]
    catalog.close()
    return seen


TASKS: dict[str, Callable[..., object]] = {
    task.__name__: task for task in (claim, count_up, finalise, first_open, prefer)
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])), flush=True)
