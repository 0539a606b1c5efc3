"""Staged change rows, read back: on the driver with Arrow for what must be known, with Spark for what must be moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from trickle.algebra.names import quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.engine.arrow import for_spark
from trickle.lake.local import single
from trickle.lake.location import Location
from trickle.lake.stage import ChangeFiles

LOCAL_ROWS = 100_000
LOCAL_BYTES = 4 << 20
"""What is smaller than both travels with the plan as a local relation: no scan, its size known, broadcast."""

_BROADCAST_PLACES = 5_000_000
_INTERNAL = {WEIGHT: LongType(), FILE: StringType(), ROW: LongType()}


@dataclass(frozen=True)
class Victims:
    """Rows to delete by the place where they lie: FILE and ROW, for the driver and for Spark."""

    places: pa.Table
    _frame: Callable[[], DataFrame]

    @staticmethod
    def of(engine: Engine, places: pa.Table) -> Victims:
        """A set that is small enough to travel with the plan."""
        return Victims(places, lambda: F.broadcast(engine.from_arrow(places)))

    @cached_property
    def frame(self) -> DataFrame:
        return self._frame()


@dataclass(frozen=True)
class ChangeRows:
    """The change rows of one stage."""

    engine: Engine
    location: Location
    staged: ChangeFiles
    held: pa.Table | None = None
    """The same rows, where the driver has them already."""

    @property
    def is_local(self) -> bool:
        return self.staged.rows <= LOCAL_ROWS and self.staged.size <= LOCAL_BYTES

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of the rows, or all of them, as Arrow. File paths repeat and come dictionary-encoded from files."""
        if self.held is not None:
            return self.held if columns is None else self.held.select(list(columns))
        filesystem, root = self.location.filesystem()
        paths = [f"{root}/{path}" if root else path for path, _ in self.staged.files]
        parts = [
            pq.read_table(
                path,
                columns=columns and list(columns),
                filesystem=filesystem,
                read_dictionary=[FILE],
                partitioning=None,
            )
            for path in paths
        ]
        return pa.concat_tables(parts).unify_dictionaries()

    def victims(self) -> Victims:
        """Where the rows to delete lie."""
        table = self.table([FILE, ROW, WEIGHT])
        places = table.filter(pc.less(table.column(WEIGHT), 0)).select([FILE, ROW])
        if places.num_rows <= LOCAL_ROWS:
            return Victims.of(self.engine, places)
        return Victims(places, partial(self._places, broadcast=places.num_rows <= _BROADCAST_PLACES))

    def _places(self, *, broadcast: bool) -> DataFrame:
        stored = self.frame(StructType([]), (WEIGHT, FILE, ROW)).where(F.col(WEIGHT) < 0).select(FILE, ROW)
        return F.broadcast(stored) if broadcast else stored

    def deletions(self, columns: Sequence[str]) -> pa.Table:
        """Columns of the rows to delete."""
        table = self.table(list(dict.fromkeys([*columns, WEIGHT])))
        return table.filter(pc.less(table.column(WEIGHT), 0)).select(list(columns))

    def frame(self, schema: StructType, internal: Sequence[str] = (WEIGHT,)) -> DataFrame:
        """The rows with the columns of the schema and some internal ones."""
        fields = [StructField(f.name, f.dataType) for f in schema.fields]
        full = StructType([*fields, *(StructField(name, _INTERNAL[name]) for name in internal)])
        if self.is_local:
            return self.engine.from_arrow(self.table(full.names), full)
        paths = [self.location.child(*path.split("/")).for_spark for path, _ in self.staged.files]
        return self.engine.spark.read.schema(full).parquet(*paths)

    def local_inserts(self, schema: StructType, internal: Sequence[str] = ()) -> pa.Table:
        """The rows to insert on the driver, each as often as its weight says."""
        table = self.table([*schema.names, *internal, WEIGHT])
        come = single(table.filter(pc.greater(table.column(WEIGHT), 0)))
        fields = [StructField(f.name, f.dataType) for f in schema.fields]
        shape = StructType([*fields, *(StructField(name, _INTERNAL[name]) for name in internal)])
        return for_spark(come.drop_columns([WEIGHT]), shape)

    def inserts(self, schema: StructType, internal: Sequence[str] = ()) -> DataFrame:
        """The rows to insert, each as often as its weight says."""
        weights = self.table([WEIGHT]).column(WEIGHT)
        rows = self.frame(schema, (WEIGHT, *internal)).where(F.col(WEIGHT) > 0)
        if pc.max(weights).as_py() > 1:
            rows = rows.withColumn(WEIGHT, F.explode(F.array_repeat(F.lit(1), F.col(WEIGHT).cast("int"))))
        return rows.select(*(F.col(quote(name)) for name in (*schema.names, *internal)))
