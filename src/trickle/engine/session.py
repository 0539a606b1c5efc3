"""The engine: one Spark session, made at first use or taken as given."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import Literal

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from trickle.algebra.names import INTERNAL_PREFIX
from trickle.engine import shared
from trickle.engine.arrow import for_spark, is_handed
from trickle.engine.failures import spark_errors
from trickle.engine.handing import Handing
from trickle.engine.jobs import JobCount, JobCounter
from trickle.engine.place import Given, Place, place_of
from trickle.engine.tuning import Load, Tuning
from trickle.errors import SparkUnavailable

Kind = Literal["classic", "connect"]

_TOO_LARGE = "spark.driver.maxResultSize"
"""Named by Spark's error when a result is larger than that."""


class Left(Enum):
    """Why rows are left to Spark."""

    UNFIT = "their types"
    MANY = "their number or size"


class Engine:
    """A Spark session and what the other folders need of it. No JVM starts before ``spark`` is used."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held: shared.Held | None = None
        self._closed = False
        self._tuning = Tuning(classic=place.kind == "classic")
        self._functions: frozenset[str] | None = None
        self._handing: Handing | None = None
        self._lock = threading.RLock()
        self._counter = JobCounter(self._context, countable=place.kind == "classic")
        if isinstance(place, Given):
            self._hold()

    @staticmethod
    def open(spark: SparkSession | str | None = None, *, config: Mapping[str, str] | None = None) -> Engine:
        """An engine for a session, a master (``local[2]``, ``spark://host:7077``), a Spark Connect address
        (``sc://host:15002``, or ``remote:local[2]`` for a server of our own), or ``local[*]`` by default.

        A given session is never stopped by us. It gets the settings in ``launch.NEEDED`` and the ``config``.
        """
        return Engine(place_of(spark, dict(config or {})))

    @property
    def kind(self) -> Kind:
        """Whether the session is a classic one or Spark Connect."""
        return self._place.kind

    @property
    def started(self) -> bool:
        """Whether the session is there already."""
        return self._held is not None

    @property
    def spark(self) -> SparkSession:
        """The session, made at first use."""
        return self._hold().session

    def sql(self, text: str, *, most: int | None = None) -> DataFrame:
        """``spark.sql`` with our errors; of a query, at ``most`` so many rows."""
        with spark_errors():
            return self.spark.sql(text if most is None else f"SELECT * FROM (\n{text}\n) LIMIT {most}")

    def own_functions(self) -> frozenset[str]:
        """The names of Spark's own functions, in lower case."""
        if self._functions is None:
            with spark_errors():
                rows = self.spark.sql("SHOW SYSTEM FUNCTIONS").collect()
            self._functions = frozenset(str(row[0]).lower() for row in rows)
        return self._functions

    def from_arrow(self, table: pa.Table, schema: StructType | None = None) -> DataFrame:
        """A DataFrame of an Arrow table, cast to the schema or to the nearest types that Spark reads."""
        fitting = for_spark(table, schema)
        with spark_errors():
            if schema is None:
                return self.spark.createDataFrame(fitting)
            handing = self._handed()
            return self.spark.createDataFrame(fitting, schema) if handing is None else handing.give(fitting, schema)

    def collect(self, frame: DataFrame) -> pa.Table:
        """All rows of a DataFrame."""
        with spark_errors():
            return self._taken(frame)

    def collect_few(
        self,
        first: Callable[[int], DataFrame],
        most: int,
        *,
        load: Load,
        fits: Callable[[StructType], bool] = lambda _: True,
    ) -> tuple[pa.Table, StructType] | Left:
        """All rows and their types, if they are at most so many and not larger than what Spark hands to the driver.

        ``first`` gives a DataFrame that has a limit. It is run as fits its load, if its types do.
        """
        with spark_errors(), self.tuned(load):
            frame = first(most + 1)
            if not (is_handed(frame.schema) and fits(frame.schema)):
                return Left.UNFIT
            try:
                rows = self._taken(frame)
            except (Py4JJavaError, PySparkException) as error:
                # Asked of Spark's own words: it stands in a cause, which our error leaves out.
                if _TOO_LARGE not in str(error):
                    raise
                return Left.MANY
            return (rows, frame.schema) if rows.num_rows <= most else Left.MANY

    def _taken(self, frame: DataFrame) -> pa.Table:
        handing = self._handed()
        return frame.toArrow() if handing is None else handing.take(frame)

    @contextmanager
    def temp_view(self, df: DataFrame) -> Iterator[str]:
        """A temporary view of the rows under a name of its own, dropped at the end of the block."""
        name = f"{INTERNAL_PREFIX}view_{uuid.uuid4().hex}"
        with spark_errors():
            df.createTempView(name)
        try:
            yield name
        finally:
            with spark_errors():
                self.spark.catalog.dropTempView(name)

    @contextmanager
    def tuned(self, load: Load) -> Iterator[None]:
        """Inside the block, plans are run as fits their load (``tuning.py``).

        Settings belong to the session: other threads that use it meanwhile run with them too, and are as right.
        """
        with self._tuning.applied(self.spark, load):
            yield

    def count_jobs(self) -> AbstractContextManager[JobCount]:
        """Count the Spark jobs that this thread starts inside the block."""
        return self._counter.count()

    def close(self) -> None:
        """Let go of the session. It stops when we made it and no other engine uses it."""
        with self._lock:
            self._closed = True
            self._handing = None
            if self._held is not None:
                shared.release(self._held)
                self._held = None

    def _hold(self) -> shared.Held:
        if self._held is not None:
            return self._held
        with self._lock:
            if self._closed:
                raise SparkUnavailable("the engine is closed", hint="connect again")
            if self._held is None:
                self._held = shared.acquire(self._place)
                self._counter.started()
            return self._held

    def _handed(self) -> Handing | None:
        """The short way of rows between here and the session, where there is one."""
        if self.kind != "classic":
            return None
        session = self.spark
        if self._handing is None:
            self._handing = Handing(session)
        return self._handing if self._handing.is_open else None

    def _context(self) -> SparkContext | None:
        return self._held.session.sparkContext if self._held else None
