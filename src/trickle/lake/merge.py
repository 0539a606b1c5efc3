"""Applying a weighted delta: by whole row, where a row is all the identity there is, or by key.

By whole row, the net delta is itself the exact change. Rows to delete are looked up among the files whose statistics
admit them, by null-safe equality on every column, and as many copies as the weight says are taken.

By key, the delta only names the rows to delete; their true contents come from the table. A row that replaces another
of its key goes where that one was, so that the ranges of keys in files stay narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from trickle.algebra.names import INTERNAL_PREFIX, quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine, spark_errors
from trickle.engine.arrow import for_spark
from trickle.errors import CorruptTable, InvalidOption, NegativeMultiplicity
from trickle.lake.assign import conform
from trickle.lake.candidates import candidate_files
from trickle.lake.changerows import ChangeRows, Victims
from trickle.lake.changes import consolidate
from trickle.lake.comparable import same_rows
from trickle.lake.datafile import DataFile
from trickle.lake.few import Few
from trickle.lake.keyed import merge_by_key
from trickle.lake.prepared import Prepared, note, staging
from trickle.lake.rewrite import apply_changes, insert_rows, rewrite_files
from trickle.lake.scan import pick, scan
from trickle.lake.search import places_by_key, places_of
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import discard, stage_change_table, stage_changes

VICTIM = INTERNAL_PREFIX + "victim"
"""Number of the row of the delta that a row of the table answers to."""

DRIVER_ROWS = 500_000
"""Rows of candidate files up to which copies are counted on the driver: that saves Spark a shuffle."""

_PAIRED = INTERNAL_PREFIX + "paired"
_DELTA = INTERNAL_PREFIX + "delta_"
_KIND = "merge"


def merge_rows(
    engine: Engine, snapshot: Snapshot, delta: DataFrame, *, is_net: bool = False, few: Few | None = None
) -> Prepared:
    """Apply a delta (columns and WEIGHT) by whole row. NegativeMultiplicity when it deletes more than there is.

    ``is_net`` promises that no two rows of the delta are equal.
    """
    with staging(snapshot.location) as stages:
        given = conform(delta, snapshot.schema, beside=(WEIGHT,))
        rows = _staged(engine, snapshot, given if is_net else consolidate(given), stages, few=few)
        return _applied(engine, snapshot, rows, stages)


def merge_table(engine: Engine, snapshot: Snapshot, delta: pa.Table, key: Sequence[str] = ()) -> Prepared:
    """The same for a delta that is on the driver, however large it is; no two of its rows cancel.

    Where the table has a ``key``, rows to delete are found by it: the delta holds them whole, as they are there.
    """
    made = merge_by_key(snapshot, delta, key, whole=True) if key else None
    if made is not None:
        return made
    fields = [StructField(f.name, f.dataType) for f in snapshot.schema.fields]
    given = for_spark(delta, StructType([*fields, StructField(WEIGHT, LongType())]))
    with staging(snapshot.location) as stages:
        staged = stage_change_table(given, snapshot.location)
        stages.append(staged.stage_id)
        return _applied(engine, snapshot, ChangeRows(engine, snapshot.location, staged, given), stages, key)


def _applied(
    engine: Engine, snapshot: Snapshot, rows: ChangeRows, stages: list[str], key: Sequence[str] = ()
) -> Prepared:
    if not rows.staged.files:
        return _nothing(snapshot, rows)
    if not rows.staged.deleted:
        return insert_rows(snapshot, rows, _KIND)
    files = candidate_files(snapshot, rows.deletions(snapshot.schema.names), snapshot.schema)
    places = places_by_key(snapshot, files, rows.deletions(key), key) if key else None
    temporary: tuple[str, ...] = ()
    if places is not None:
        victims = Victims.of(engine, places)
    else:
        victims, temporary = _victims(engine, snapshot, files, rows, stages)
    if victims.places.num_rows != rows.staged.deleted:
        missing = rows.staged.deleted - victims.places.num_rows
        raise _absent(snapshot, f"{missing} of {rows.staged.deleted} rows to delete are not there")
    adds, removes = rewrite_files(engine, snapshot, victims, rows, stages, placed=False)
    for stage_id in temporary:
        discard(snapshot.location, stage_id)
        stages.remove(stage_id)
    return Prepared(
        location=snapshot.location,
        read_version=snapshot.version,
        adds=adds,
        removes=removes,
        info=note(_KIND, rows.staged.inserted, rows.staged.deleted, rows.staged),
        inserted=rows.staged.inserted,
        deleted=rows.staged.deleted,
        stage_ids=tuple(stages),
        changes=rows.staged,
    )


def merge_keyed(engine: Engine, snapshot: Snapshot, delta: DataFrame, key: Sequence[str]) -> Prepared:
    """Apply a delta by key: WEIGHT < 0 removes the row of that key, WEIGHT > 0 inserts. NULL keys are keys too.

    NegativeMultiplicity when a key to remove is absent, CorruptTable when it is there more than once.
    """
    if not key:
        raise InvalidOption("a merge by key needs a key")
    keys = pick(snapshot.schema, key)
    with staging(snapshot.location) as stages:
        rows = _staged(engine, snapshot, conform(delta, snapshot.schema, beside=(WEIGHT,)), stages)
        if not rows.staged.files:
            return _nothing(snapshot, rows)
        if not rows.staged.deleted:
            return insert_rows(snapshot, rows, _KIND)
        removed = rows.deletions(keys.names)
        if removed.num_rows != rows.staged.deleted:
            raise _absent(snapshot, "a key is removed more than once")
        files = candidate_files(snapshot, removed, keys)
        located = _staged(engine, snapshot, locate_keys(engine, snapshot, files, rows, keys), stages)
        _check_keys(snapshot, located, removed.num_rows, rows.staged.inserted)
        discard(snapshot.location, rows.staged.stage_id)
        stages.remove(rows.staged.stage_id)
        return apply_changes(engine, snapshot, located, stages, _KIND)


def merge_keyed_table(engine: Engine, snapshot: Snapshot, delta: pa.Table, key: Sequence[str]) -> Prepared:
    """The same for a delta that is on the driver."""
    made = merge_by_key(snapshot, delta, key, whole=False)
    return merge_keyed(engine, snapshot, engine.from_arrow(delta), key) if made is None else made


def locate_rows(engine: Engine, snapshot: Snapshot, files: Sequence[DataFile], rows: ChangeRows) -> DataFrame:
    """FILE and ROW of every copy of the negative rows, with the VICTIM they answer to and its WEIGHT."""
    wanted = _renamed(rows.frame(snapshot.schema).where(F.col(WEIGHT) < 0), snapshot.schema)
    table = scan(engine, snapshot, files=files, located=True)
    names = snapshot.schema.names
    matched = table.join(
        F.broadcast(wanted) if rows.is_local else wanted,
        same_rows(
            snapshot.schema.fields,
            {name: table[quote(name)] for name in names},
            {name: wanted[_delta(place)] for place, name in enumerate(names)},
        ),
    )
    return matched.select(FILE, ROW, VICTIM, WEIGHT)


def _capped(found: pa.Table) -> pa.Table:
    """As many copies of each victim as its weight says, on the driver."""
    left: dict[int, int] = {}
    kept = []
    for victim, weight in zip(found.column(VICTIM).to_pylist(), found.column(WEIGHT).to_pylist(), strict=True):
        left[victim] = left.get(victim, -weight) - 1
        kept.append(left[victim] >= 0)
    return found.filter(pa.array(kept, pa.bool_())).select([FILE, ROW])


def capped(found: DataFrame) -> DataFrame:
    """As many copies of each victim as its weight says, in Spark."""
    copy = F.row_number().over(Window.partitionBy(VICTIM).orderBy(FILE, ROW))
    return found.withColumn(VICTIM, copy).where(F.col(VICTIM) <= -F.col(WEIGHT)).select(FILE, ROW)


def locate_keys(
    engine: Engine, snapshot: Snapshot, files: Sequence[DataFile], rows: ChangeRows, keys: StructType
) -> DataFrame:
    """The change rows of a delta by key: rows of the table to delete, and rows to insert with where they should go."""
    schema = snapshot.schema
    given = _with_pairs(engine, rows, schema, keys)
    wanted = _renamed(given.where((F.col(WEIGHT) < 0) | F.col(_PAIRED)), schema)
    table = scan(engine, snapshot, files=files, located=True)
    matched = table.join(
        F.broadcast(wanted) if rows.is_local else wanted,
        same_rows(
            keys.fields,
            {name: table[quote(name)] for name in keys.names},
            {name: wanted[_delta(place)] for place, name in enumerate(schema.names) if name in keys.names},
        ),
    )
    deletes = F.col(WEIGHT) < 0
    replaced = matched.select(
        *(F.when(deletes, F.col(quote(n))).otherwise(F.col(_delta(p))).alias(n) for p, n in enumerate(schema.names)),
        WEIGHT,
        FILE,
        F.when(deletes, F.col(ROW)).alias(ROW),
        F.when(deletes, F.col(VICTIM)).alias(VICTIM),
    )
    new = given.where((F.col(WEIGHT) > 0) & ~F.col(_PAIRED)).select(
        *(F.col(quote(name)) for name in schema.names),
        WEIGHT,
        F.lit(None).cast("string").alias(FILE),
        F.lit(None).cast("bigint").alias(ROW),
        F.lit(None).cast("bigint").alias(VICTIM),
    )
    return replaced.union(new)


def _with_pairs(engine: Engine, rows: ChangeRows, schema: StructType, keys: StructType) -> DataFrame:
    """The delta with a mark on insertions whose key is removed too; large deltas go without, and so to new files."""
    if not rows.is_local:
        return rows.frame(schema).withColumn(_PAIRED, F.lit(False))
    table = rows.table([*schema.names, WEIGHT])
    weights = table.column(WEIGHT).to_pylist()
    given = [_hashable(row) for row in table.select(keys.names).to_pylist()]
    removed = {key for key, weight in zip(given, weights, strict=True) if weight < 0}
    paired = [weight > 0 and key in removed for key, weight in zip(given, weights, strict=True)]
    marked = table.append_column(_PAIRED, pa.array(paired, pa.bool_()))
    fields = [StructField(f.name, f.dataType) for f in schema.fields]
    shape = StructType([*fields, StructField(WEIGHT, LongType()), StructField(_PAIRED, BooleanType())])
    return engine.from_arrow(marked, shape)


def _hashable(value: object) -> object:
    match value:
        case dict():
            return tuple((name, _hashable(inner)) for name, inner in value.items())
        case list():
            return tuple(_hashable(inner) for inner in value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value


def _renamed(delta: DataFrame, schema: StructType) -> DataFrame:
    columns = [F.col(quote(name)).alias(_delta(place)) for place, name in enumerate(schema.names)]
    return delta.select(*columns, WEIGHT, F.monotonically_increasing_id().alias(VICTIM))


def _delta(place: int) -> str:
    return f"{_DELTA}{place}"


def _staged(
    engine: Engine, snapshot: Snapshot, rows: DataFrame, stages: list[str], *, few: Few | None = None
) -> ChangeRows:
    staged, held = stage_changes(rows, snapshot.location, few=few)
    stages.append(staged.stage_id)
    return ChangeRows(engine, snapshot.location, staged, held)


def _victims(
    engine: Engine, snapshot: Snapshot, files: Sequence[DataFile], rows: ChangeRows, stages: list[str]
) -> tuple[Victims, tuple[str, ...]]:
    """The rows to delete, and the stages that hold them for as long as they are needed."""
    if rows.is_local:
        places = places_of(snapshot, files, rows.deletions([*snapshot.schema.names, WEIGHT]))
        if places is not None:
            return Victims.of(engine, places), ()
    found = locate_rows(engine, snapshot, files, rows)
    # A row of the table answers to one victim at most: there cannot be more copies than rows.
    if rows.is_local and sum(file.rows or DRIVER_ROWS for file in files) <= DRIVER_ROWS:
        with spark_errors():
            return Victims.of(engine, _capped(found.toArrow())), ()
    located = _staged(engine, snapshot, capped(found).withColumn(WEIGHT, F.lit(-1)), stages)
    return located.victims(), (located.staged.stage_id,)


def _check_keys(snapshot: Snapshot, located: ChangeRows, removed: int, inserted: int) -> None:
    """Every key to remove was found, and once; every row to insert is still there."""
    numbers = (
        located.table([VICTIM]).column(VICTIM).drop_null() if located.staged.files else pa.chunked_array([], pa.int64())
    )
    found = len(pc.unique(numbers))
    if found < removed:
        raise _absent(snapshot, f"{removed - found} of {removed} keys to remove are not there")
    if len(numbers) > found or located.staged.inserted != inserted:
        raise CorruptTable("the key is not unique in the table", detail=f"table at {snapshot.location.uri}")


def _absent(snapshot: Snapshot, detail: str) -> NegativeMultiplicity:
    return NegativeMultiplicity(
        "a delta deletes what the table does not hold",
        detail=f"{detail}; table at {snapshot.location.uri}, version {snapshot.version}",
        hint="reinitialize the table from its sources",
    )


def _nothing(snapshot: Snapshot, rows: ChangeRows) -> Prepared:
    discard(snapshot.location, rows.staged.stage_id)
    return Prepared(snapshot.location, snapshot.version)
