"""The change of a table between two versions as weighted rows, and the net of weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from trickle.algebra.names import nearest, quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.errors import HistoryLost, SchemaDrift
from trickle.lake.counts import ChangeCount, count_changes
from trickle.lake.datafile import DataFile
from trickle.lake.difference import Difference, between
from trickle.lake.location import Location
from trickle.lake.paths import exists
from trickle.lake.scan import read_files, same_type
from trickle.lake.vectors import hidden_rows

__all__ = ["ChangeCount", "changes", "consolidate", "count_changes"]

_FEED_TYPE = "_change_type"
_FEED_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def changes(
    engine: Engine, location: Location, old: int, new: int, *, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows that the versions (old, new] inserted (+1) and deleted (-1): the columns and WEIGHT, not netted.

    Without ``columns``: those that every version of the range has. SchemaDrift when one asked for is not among them.
    """
    found = between(location, old, new)
    schema = shared_schema(location, found.schemas, columns)
    require_files(location, found)
    return _Reader(engine, location, schema).read(found)


def consolidate(df: DataFrame) -> DataFrame:
    """The net of weighted rows: one row for each distinct row whose weights do not cancel.

    Spark groups NULL with NULL, NaN with NaN, 0.0 with -0.0, and maps without regard to the order of their entries.
    """
    columns = [F.col(quote(name)) for name in df.columns if name != WEIGHT]
    net = df.groupBy(*columns).agg(F.sum(WEIGHT).cast(LongType()).alias(WEIGHT))
    return net.where(F.col(WEIGHT) != 0)


class _Reader:
    """Reads the parts of a difference with one schema."""

    def __init__(self, engine: Engine, location: Location, schema: StructType) -> None:
        self._engine = engine
        self._location = location
        self._schema = schema

    def read(self, found: Difference) -> DataFrame:
        parts = [
            self._weighted([file for file, given in found.whole if given == weight], weight)
            for weight in sorted({weight for _, weight in found.whole}, reverse=True)
        ]
        if revised := self._revised(found):
            parts.append(revised)
        if found.feed:
            parts.append(self._fed(found.feed))
        if kept := [path for exact in found.exact for path in exact.paths]:
            parts.append(self._kept(kept))
        return reduce(DataFrame.union, parts) if parts else self._weighted((), 1)

    def _weighted(self, files: Sequence[DataFile], weight: int) -> DataFrame:
        rows = read_files(self._engine, self._location, self._schema, files)
        return rows.select("*", F.lit(weight).cast(LongType()).alias(WEIGHT))

    def _kept(self, paths: list[str]) -> DataFrame:
        """Change rows that Trickle wrote: the weight is in the file."""
        schema = StructType([*self._schema.fields, StructField(WEIGHT, LongType())])
        return read_files(self._engine, self._location, schema, [DataFile(path, 0) for path in paths])

    def _fed(self, files: Sequence[DataFile]) -> DataFrame:
        """A change data feed: the kind of change is in the file."""
        schema = StructType([*self._schema.fields, StructField(_FEED_TYPE, StringType())])
        rows = read_files(self._engine, self._location, schema, files)
        weight = F.raise_error(F.concat(F.lit("unknown kind of change "), F.col(_FEED_TYPE))).cast(LongType())
        for kind, value in _FEED_WEIGHTS.items():
            weight = F.when(F.col(_FEED_TYPE) == kind, F.lit(value).cast(LongType())).otherwise(weight)
        return rows.select(*(F.col(quote(name)) for name in self._schema.names), weight.alias(WEIGHT))

    def _revised(self, found: Difference) -> DataFrame | None:
        """Rows that deletion vectors hide anew or show again, each file read once."""
        vectors = {f.deletion_vector for pair in found.revised for f in pair if f.deletion_vector is not None}
        hidden = hidden_rows(self._location, vectors)
        parts: list[tuple[str, int, list[int]]] = []
        for before, after in found.revised:
            was = set(hidden[before.deletion_vector]) if before.deletion_vector else set[int]()
            now = set(hidden[after.deletion_vector]) if after.deletion_vector else set[int]()
            parts += [(after.path, -1, sorted(now - was)), (after.path, 1, sorted(was - now))]
        parts = [part for part in parts if part[2]]
        if not parts:
            return None
        paths = {path for path, _, _ in parts}
        whole = [replace(f, deletion_vector=None, deleted=0) for _, f in found.revised if f.path in paths]
        rows = read_files(self._engine, self._location, self._schema, whole, located=True)
        return rows.join(F.broadcast(self._chosen(parts)), [FILE, ROW]).drop(FILE, ROW)

    def _chosen(self, parts: list[tuple[str, int, list[int]]]) -> DataFrame:
        return self._engine.from_arrow(
            pa.table(
                {
                    FILE: pa.array([path for path, _, rows in parts for _ in rows], pa.string()),
                    ROW: pa.array([row for _, _, rows in parts for row in rows], pa.int64()),
                    WEIGHT: pa.array([weight for _, weight, rows in parts for _ in rows], pa.int64()),
                }
            )
        )


def shared_schema(location: Location, schemas: Sequence[StructType], columns: Sequence[str] | None) -> StructType:
    """The newest schema's columns that all others have too, with the same type; of these, the ones asked for."""
    older = [{field.name.lower(): field for field in schema.fields} for schema in schemas[:-1]]
    shared = {
        field.name.lower(): field
        for field in schemas[-1].fields
        if all(field.name.lower() in s and same_type(s[field.name.lower()].dataType, field.dataType) for s in older)
    }
    if columns is None:
        return StructType(list(shared.values()))
    for column in columns:
        if column.lower() not in shared:
            guess = nearest(column, [field.name for field in shared.values()])
            raise SchemaDrift(
                f"column {column!r} is not the same in all versions of the range",
                detail=f"table at {location.uri}" + (f"; the nearest name is {guess}" if guess else ""),
                hint="reinitialize what was built on the older version",
            )
    return StructType([shared[column.lower()] for column in columns])


def require_files(location: Location, found: Difference) -> None:
    """HistoryLost when a file that the newest version no longer holds was vacuumed away."""
    old = [file.path for file, _ in found.whole if file.identity not in found.present]
    old += [file.path for file in found.feed]
    old += [path for kept in found.exact for path in kept.paths]
    with ThreadPoolExecutor(max_workers=16) as pool:
        there = list(pool.map(lambda path: exists(location, path), old))
    for path, found_it in zip(old, there, strict=True):
        if not found_it:
            raise HistoryLost(
                "a file that holds changes is gone",
                detail=f"{path} in {location.uri}",
                hint="it was vacuumed: reinitialize what was built on the older version",
            )
