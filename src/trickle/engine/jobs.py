"""Counts the Spark jobs that one thread starts.

A classic session has a status tracker, and every job carries the job group of the thread that started it. Spark
Connect has neither: there the count is None, which says "not known" and never "none".
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext, StatusTracker

_GROUP = "spark.jobGroup.id"
_QUIET_SECONDS = 0.005
_PATIENCE_SECONDS = 2.0


@dataclass
class JobCount:
    """The jobs of a block; ask after the block has ended."""

    group: str
    _tracker: StatusTracker | None = None
    _total: Callable[[], int] | None = None
    """How many jobs the session has started so far, whoever did; None where it does not tell."""
    _begin: int = 0
    _most: int | None = None
    """How many jobs anybody started during the block."""
    _inner: list[JobCount] = field(default_factory=list)
    _known: bool = True
    _jobs: int | None = None

    @property
    def jobs(self) -> int | None:
        """How many jobs the block started; None on Spark Connect."""
        if not self._known:
            return None
        if self._jobs is None:
            inside = sum(inner.jobs or 0 for inner in self._inner)
            most = None if self._most is None else self._most - inside
            self._jobs = inside + (_settled(self._tracker, self.group, most) if self._tracker else 0)
        return self._jobs


def _settled(tracker: StatusTracker, group: str, most: int | None) -> int:
    """The jobs of a group once the tracker, which lags behind by some events, has them all or tells the same twice."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    jobs = tracker.getJobIdsForGroup(group)
    while len(jobs) != most and time.monotonic() < deadline:
        time.sleep(_QUIET_SECONDS)
        before, jobs = jobs, tracker.getJobIdsForGroup(group)
        if set(before) == set(jobs) and not any(_running(tracker, job) for job in jobs):
            break
    return len(jobs)


def _running(tracker: StatusTracker, job: int) -> bool:
    info = tracker.getJobInfo(job)
    return info is not None and info.status == "RUNNING"


class JobCounter:
    """The counted blocks of one engine, a stack per thread."""

    def __init__(self, context: Callable[[], SparkContext | None], *, countable: bool) -> None:
        self._context = context
        self._countable = countable
        self._local = threading.local()
        self._scheduler: tuple[SparkContext, Any] | None = None

    @contextmanager
    def count(self) -> Iterator[JobCount]:
        """Count the jobs that this thread starts inside the block; an inner block counts for the outer one too."""
        count = JobCount(f"trickle-{uuid.uuid4().hex}", _known=self._countable)
        if not self._countable:
            yield count
            return
        stack = self._stack()
        outer_group = self._enter(count)
        stack.append(count)
        try:
            yield count
        finally:
            stack.pop()
            if stack:
                stack[-1]._inner.append(count)
            if count._tracker and (context := self._context()):
                count._most = None if count._total is None else count._total() - count._begin
                _set_group(context, stack[-1].group if stack else outer_group)

    def started(self) -> None:
        """Tell that the session was made just now, perhaps in the middle of counted blocks of this thread."""
        if self._countable:
            for count in self._stack():
                self._enter(count)

    def _enter(self, count: JobCount) -> str | None:
        context = self._context()
        if context is None:
            return None
        before = context.getLocalProperty(_GROUP)
        _set_group(context, count.group)
        count._tracker = context.statusTracker()
        count._total = self._counted(context)
        count._begin = 0 if count._total is None else count._total()
        return before

    def _counted(self, context: SparkContext) -> Callable[[], int] | None:
        """What tells how many jobs were started; asked for once, as every name on the way is a call into the JVM."""
        if self._scheduler is None or self._scheduler[0] is not context:
            try:
                self._scheduler = (context, cast(Any, context)._jsc.sc().dagScheduler())
            except Py4JError:  # A cluster may forbid it.
                self._scheduler = (context, None)
        scheduler = self._scheduler[1]
        return None if scheduler is None else lambda: int(scheduler.numTotalJobs())

    def _stack(self) -> list[JobCount]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[JobCount] = self._local.stack
        return stack


def _set_group(context: SparkContext, group: str | None) -> None:
    # PySpark's stub forgets that None removes a property.
    context.setLocalProperty(_GROUP, cast(str, group))
