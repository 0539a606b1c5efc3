"""Rows of a stream table on their way out: all of one version, or what changed between two, in batches.

A small change is read on the driver. Everything else is computed by Spark, written beside the table as files that no
log names, and read back batch by batch: so memory is bounded by a batch, whatever the rows are. What a process that
dies leaves of that, vacuum removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle.algebra.names import quote
from trickle.algebra.weights import WEIGHT
from trickle.catalog.records import Relation
from trickle.changes.between import ChangeBuffer
from trickle.engine import spark_errors
from trickle.lake.changes import consolidate
from trickle.lake.few import opened
from trickle.lake.location import Location
from trickle.lake.scan import scan
from trickle.lake.snapshot import open_snapshot
from trickle.lake.stage import discard, stage_changes
from trickle.publish.types import Column
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse

BATCH_ROWS = 50_000

Batches = Iterator[pa.Table]
"""Tables with the published columns and WEIGHT."""

_JSON_OPTIONS = {"ignoreNullFields": "false", "timeZone": "UTC"}


@contextmanager
def changed(
    warehouse: Warehouse, relation: Relation, old: int, new: int, columns: Sequence[Column]
) -> Iterator[Batches]:
    """What changed between two versions; rows that cancel may both be there. HistoryLost, SchemaDrift."""
    span = ChangeBuffer(
        warehouse.location_of(relation), LakePosition(relation.uid, old), LakePosition(relation.uid, new)
    )
    names = [column.name for column in columns]
    local = None if any(column.is_nested for column in columns) else span.local(names)
    if local is not None:
        yield _sliced(local)
        return
    with _staged(span.location, consolidate(_spelled(span.rows(warehouse.engine, names), columns))) as batches:
        yield batches


@contextmanager
def whole(warehouse: Warehouse, relation: Relation, version: int, columns: Sequence[Column]) -> Iterator[Batches]:
    """All rows of a version, each with the weight 1."""
    snapshot = open_snapshot(warehouse.location_of(relation), version)
    frame = scan(warehouse.engine, snapshot, columns=[column.name for column in columns])
    with _staged(snapshot.location, _spelled(frame.withColumn(WEIGHT, F.lit(1)), columns)) as batches:
        yield batches


def _sliced(rows: pa.Table) -> Batches:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def _spelled(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Nested values as the JSON that is published: equal texts are equal rows there."""
    return frame.select(*(_value(column) for column in columns), F.col(WEIGHT))


def _value(column: Column) -> SparkColumn:
    value = F.col(quote(column.name))
    return F.to_json(value, _JSON_OPTIONS).alias(column.name) if column.is_nested else value


@contextmanager
def _staged(location: Location, frame: DataFrame) -> Iterator[Batches]:
    with spark_errors():
        staged, _ = stage_changes(frame, location)
    try:
        yield _read_back(location, [path for path, _ in staged.files])
    finally:
        discard(location, staged.stage_id)


def _read_back(location: Location, paths: Sequence[str]) -> Batches:
    for path in paths:
        with opened(location, path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield pa.Table.from_batches([batch])
