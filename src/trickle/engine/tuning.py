"""Settings of the session that fit what is being run: plans of changes, few rows, little to read.

Settings belong to the session, so threads share them. What is set is what suits the heaviest of the loads that are
under way: a light plan that runs with heavier settings takes some more milliseconds, a heavy one with light settings
would take minutes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pyspark.sql import SparkSession

Load = Literal["any", "change", "small", "alone", "light"]
"""From the heaviest: anything; a plan of changes; one with few rows to come out; one that a single task does best; one
with few rows to read as well."""

_CHANGE: Mapping[str, str] = {
    # Over a table of twenty columns the optimiser would take minutes to derive what nobody asked for.
    "spark.sql.constraintPropagation.enabled": "false",
    # Adaptive execution makes a job of every shuffle, of which there is one for nearly every join of every term.
    "spark.sql.adaptive.enabled": "false",
}
_SMALL: Mapping[str, str] = {
    **_CHANGE,
    # Starting a second task takes longer than it saves.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
_RULES = "org.apache.spark.sql.catalyst.optimizer"
_ALONE: Mapping[str, str] = {
    **_SMALL,
    # Every broadcast is a job of its own, and one task needs none.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # What Spark thinks is too large for one task it would shuffle, into one partition, for nothing.
    "spark.sql.maxSinglePartitionBytes": str(1 << 62),
    # It takes the product for the size of a join: after five of them, more than any number.
    "spark.sql.sources.fileCompressionFactor": "1.0E-9",
    # These move a semi join below the mark that its input has one partition, where it would shuffle its input.
    "spark.sql.optimizer.excludedRules": (
        f"{_RULES}.PushDownLeftSemiAntiJoin,{_RULES}.PushLeftSemiLeftAntiThroughJoin"
    ),
}
_LIGHT: Mapping[str, str] = {
    **_ALONE,
    # Compiling a plan takes longer than interpreting it for some thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_SETTINGS: Mapping[Load, Mapping[str, str]] = {
    "any": {},
    "change": _CHANGE,
    "small": _SMALL,
    "alone": _ALONE,
    "light": _LIGHT,
}
_HEAVIEST_FIRST: tuple[Load, ...] = ("any", "change", "small", "alone", "light")

LIGHT_ROWS = 50_000
"""Rows up to which reading is light."""
ALONE_ROWS = 1_500_000
"""Rows up to which one task reads them in less time than several take to begin."""


def is_light(counts: Iterable[int | None]) -> bool:
    """Whether so many rows are little to read; a number that nobody knows may be any."""
    return sum(LIGHT_ROWS if rows is None else rows for rows in counts) < LIGHT_ROWS


def load_of(counts: Iterable[int | None]) -> Load:
    """The load of a plan that reads so many rows, of which few come out."""
    rows = sum(ALONE_ROWS if rows is None else rows for rows in counts)
    return "light" if rows < LIGHT_ROWS else "alone" if rows < ALONE_ROWS else "small"


class Tuning:
    """Settings that hold while somebody needs them."""

    def __init__(self, *, classic: bool) -> None:
        self._lock = threading.Lock()
        self._loads: dict[int, list[Load]] = {}
        self._current: dict[str, str | None] = {}
        """The settings as they are; None for one that is not set."""
        self._usual: dict[str, str | None] = {}
        """The same as whoever owns the session has them."""
        self._together = _Together() if classic else None

    @contextmanager
    def applied(self, spark: SparkSession, load: Load) -> Iterator[None]:
        """Set what fits a load, and put back what was there when the last user is done."""
        thread = threading.get_ident()
        with self._lock:
            self._loads.setdefault(thread, []).append(load)
        try:
            with self._lock:
                self._settle(spark)
            yield
        finally:
            with self._lock:
                self._loads[thread].pop()
                if not self._loads[thread]:
                    del self._loads[thread]
                self._settle(spark)

    def _settle(self, spark: SparkSession) -> None:
        current = {loads[-1] for loads in self._loads.values()}
        heaviest: Load = next((load for load in _HEAVIEST_FIRST if load in current), "any")
        wanted = _SETTINGS[heaviest]
        for name in wanted.keys() - self._usual.keys():
            self._usual[name] = self._current[name] = spark.conf.get(name, None)
            if self._together is not None and self._usual[name] is None:
                self._together.note(spark, name)
        values = {name: wanted.get(name, usual) for name, usual in self._usual.items()}
        if heaviest != "any" and self._together is not None:
            values = self._together.spelled_out(values)
        new = {name: value for name, value in values.items() if self._current[name] != value}
        # First: what is set before one that cannot be is put back too.
        self._current |= new
        self._put(spark, new)
        if not self._loads:
            # Whoever owns the session may choose other settings before the next load.
            self._usual.clear()
            self._current.clear()

    def _put(self, spark: SparkSession, values: Mapping[str, str | None]) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        for name in values.keys() - given.keys():
            spark.conf.unset(name)
        if given and self._together is not None:
            self._together.put(spark, given)
            return
        for name, value in given.items():
            spark.conf.set(name, value)


class _Together:
    """Several settings of a classic session in one call of the JVM: a refresh changes nine of them at every step."""

    def __init__(self) -> None:
        self._conf: Any = None
        self._known: dict[frozenset[tuple[str, str]], Any] = {}
        self._defaults: dict[str, str | None] = {}

    def note(self, spark: SparkSession, name: str) -> None:
        """Ask for the default of a setting that is not set; some have none."""
        if name not in self._defaults:
            self._defaults[name] = spark.conf.get(name)

    def spelled_out(self, values: Mapping[str, str | None]) -> dict[str, str | None]:
        """The same with defaults for what is not set: to unset takes a call for each."""
        return {name: self._defaults.get(name) if value is None else value for name, value in values.items()}

    def put(self, spark: SparkSession, values: Mapping[str, str]) -> None:
        """Set all of them."""
        session: Any = spark
        if self._conf is None:
            self._conf = session._jsparkSession.sessionState().conf()
        key = frozenset(values.items())
        if key not in self._known:
            self._known[key] = session._jvm.java.util.Properties()
            for name, value in values.items():
                self._known[key].setProperty(name, value)
        self._conf.setConf(self._known[key])
