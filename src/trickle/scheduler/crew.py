"""The workers: units side by side, as many as the setting allows, the urgent ones first.

A schema that has its quota of workers waits while others have units to run; when there are none, it may have the idle
workers too, since a quota is there to leave room for others and not to leave cores idle.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from trickle.refresh.outcome import RefreshResult

_MOST_WORKERS = 256

Result = list[RefreshResult] | BaseException


@dataclass(frozen=True)
class Place:
    """Where a unit stands in the queue."""

    rank: int
    """IMMEDIATE before hot, warm and cold."""
    number: int
    """Among equals the one that was first."""
    schemas: frozenset[str]


@dataclass
class Task:
    """A unit with the work to be done for it."""

    key: str
    name: str
    place: Place
    work: Callable[[], list[RefreshResult]]
    done: Callable[[Result], None]
    drop: Callable[[], None]
    """Called instead when no worker begins it."""
    result: Result = field(default_factory=list, init=False)


def choose(waiting: Sequence[Place], running: Collection[Place], quota: int) -> int:
    """Which of the waiting comes next, when a worker is idle.

    >>> busy = Place(0, 1, frozenset({"sales"}))
    >>> choose([Place(0, 2, frozenset({"sales"})), Place(1, 3, frozenset({"stock"}))], [busy], quota=1)
    1
    """
    taken = Counter(schema for place in running for schema in place.schemas)

    def order(index: int) -> tuple[bool, int, int]:
        place = waiting[index]
        over = quota > 0 and any(taken[schema] >= quota for schema in place.schemas)
        return over, place.rank, place.number

    return min(range(len(waiting)), key=order)


class Crew:
    """A pool of workers. Everything but the work itself happens in the thread that calls ``step``."""

    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(_MOST_WORKERS, thread_name_prefix="trickle-worker")
        self._ended: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._notify = notify
        self.waiting: list[Task] = []
        self.running: dict[str, Task] = {}
        self.stopping = threading.Event()

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.running

    def put(self, task: Task) -> None:
        """Queue a unit."""
        self.waiting.append(task)

    def start(self, workers: int, quota: int) -> None:
        """Give idle workers something to do."""
        while self.waiting and len(self.running) < workers and not self.stopping.is_set():
            index = choose([t.place for t in self.waiting], [t.place for t in self.running.values()], quota)
            task = self.waiting.pop(index)
            self.running[task.key] = task
            self._pool.submit(self._carry_out, task)

    def collect(self, timeout: float | None = 0) -> bool:
        """Take in what has ended; wait for the first one for up to ``timeout`` seconds (None: as long as it takes)."""
        found = False
        while True:
            try:
                task = self._ended.get(timeout=timeout) if timeout != 0 else self._ended.get_nowait()
            except queue.Empty:
                return found
            found, timeout = True, 0
            del self.running[task.key]
            task.done(task.result)

    def drop_waiting(self) -> None:
        """Take back what no worker has begun."""
        dropped, self.waiting = self.waiting, []
        for task in dropped:
            task.drop()

    def close(self) -> None:
        """Let the workers go; what they are at is finished first."""
        self.stopping.set()
        self._pool.shutdown(wait=True)

    def _carry_out(self, task: Task) -> None:
        try:
            task.result = task.work()
        except BaseException as error:  # noqa: BLE001 - a unit that fails, however it does, must not take the others with it
            task.result = error
        self._ended.put(task)
        self._notify()
