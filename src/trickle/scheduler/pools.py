"""FAIR pools: on a classic session each unit's jobs share the cores with those of the others, instead of queueing.

Spark Connect has no pools; there, only the number of workers spreads the load. A session that does not schedule
fairly ignores the name of a pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from trickle.engine import Engine

_POOL = "spark.scheduler.pool"


@contextmanager
def in_pool(engine: Engine, name: str) -> Iterator[None]:
    """Inside the block, jobs of this thread belong to a pool of that name."""
    if engine.kind != "classic" or not engine.started:
        yield
        return
    context = engine.spark.sparkContext
    context.setLocalProperty(_POOL, name)
    try:
        yield
    finally:
        # PySpark's stub forgets that None removes a property.
        context.setLocalProperty(_POOL, cast(str, None))
