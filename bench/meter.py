"""What Spark read in a block, as its own status stores tell: an account that does not depend on ours.

Classic sessions only; on Spark Connect nothing is known. Files that the driver reads by itself (small changes, the
log) are not among them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from trickle.engine import Engine

_FILES = "number of files read"


@dataclass
class Reads:
    """Filled when the block ends; None where Spark does not tell."""

    files: int | None = None
    rows: int | None = None


def tidy(engine: Engine) -> None:
    """Let the JVM collect its garbage now: what one refresh leaves is not for the next one to pay."""
    gc.collect()
    if engine.kind == "classic":
        jvm: Any = engine.spark.sparkContext._jvm
        jvm.System.gc()


@contextmanager
def reading(engine: Engine) -> Iterator[Reads]:
    """What all jobs of the session that start in the block read."""
    found = Reads()
    if engine.kind != "classic":
        yield found
        return
    context = engine.spark.sparkContext._jsc.sc()
    queries = engine.spark._jsparkSession.sharedState().statusStore()
    context.listenerBus().waitUntilEmpty()
    last_job, last_query = _newest_job(context), _newest_query(queries)
    yield found
    context.listenerBus().waitUntilEmpty()
    found.rows = sum(_rows(context.statusStore(), job) for job in range(last_job + 1, _newest_job(context) + 1))
    found.files = sum(_files(queries, query) for query in range(last_query + 1, _newest_query(queries) + 1))


def _newest_job(context: Any) -> int:
    jobs = context.statusStore().jobsList(None)
    return max((jobs.apply(i).jobId() for i in range(min(jobs.size(), 1))), default=-1)


def _newest_query(queries: Any) -> int:
    held = queries.executionsList()
    return int(held.last().executionId()) if held.size() else -1


def _rows(store: Any, job: int) -> int:
    """Rows that the stages of a job took in from files; stages that were skipped took none."""
    stages = store.job(job).stageIds()
    total = 0
    for index in range(stages.size()):
        try:
            total += int(store.lastStageAttempt(stages.apply(index)).inputRecords())
        except Py4JJavaError:
            continue
    return total


def _files(queries: Any, query: int) -> int:
    found = queries.execution(query)
    if found.isEmpty():
        return 0
    metrics = found.get().metrics()
    wanted = {m.accumulatorId() for m in (metrics.apply(i) for i in range(metrics.size())) if m.name() == _FILES}
    if not wanted:
        return 0
    values = queries.executionMetrics(query)
    told = [values.get(accumulator) for accumulator in wanted]
    return sum(int(value.get().replace(",", "")) for value in told if not value.isEmpty())
