"""Settings for plans of changes: wide expressions, many joins, few rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

ALWAYS: Mapping[str, str] = {
    # Over a table of twenty columns the optimiser would take minutes to derive what nobody asked for.
    "spark.sql.constraintPropagation.enabled": "false",
}
SMALL: Mapping[str, str] = {
    # Adaptive execution makes a job of every shuffle.
    "spark.sql.adaptive.enabled": "false",
}


class Tuning:
    """Settings that hold while somebody needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: Counter[str] = Counter()
        self._usual: dict[str, str | None] = {}

    @contextmanager
    def applied(self, spark: SparkSession, *, small: bool) -> Iterator[None]:
        """Set them, and put back what was there when the last user is done."""
        wanted = {**ALWAYS, **SMALL} if small else ALWAYS
        with self._lock:
            for name, value in wanted.items():
                if not self._users[name]:
                    self._usual[name] = spark.conf.get(name, None)
                    spark.conf.set(name, value)
                self._users[name] += 1
        try:
            yield
        finally:
            with self._lock:
                for name in wanted:
                    self._users[name] -= 1
                    if not self._users[name]:
                        self._restore(spark, name)

    def _restore(self, spark: SparkSession, name: str) -> None:
        usual = self._usual.pop(name)
        if usual is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, usual)
