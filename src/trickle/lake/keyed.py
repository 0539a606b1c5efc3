"""A delta that is on the driver, applied by key: Arrow reads, thins out and writes anew each touched file.

Spark takes longer to find out which rows of a file stay than Arrow takes to write the file, so this is the way of every
delta whose touched files one machine can write, however many rows it has. One file is held at a time for each thread.

Rows to delete are found by their key alone: it is unique. A row that replaces another of its key goes where that one
was, so that the ranges of keys in files stay narrow; rows of other keys come into new files, in the order of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DoubleType, FloatType, LongType, StructField, StructType

from trickle.algebra.names import INTERNAL_PREFIX
from trickle.algebra.weights import ROW, WEIGHT
from trickle.engine.arrow import for_spark
from trickle.errors import CorruptTable, NegativeMultiplicity
from trickle.lake.candidates import candidate_files
from trickle.lake.datafile import DataFile
from trickle.lake.few import THREADS, are_plain, are_written_anew, is_simple, read_few
from trickle.lake.prepared import Prepared, note, staging
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import ORDERED_ROWS, discard, stage_change_table, stage_made

_NUMBER = INTERNAL_PREFIX + "number"
_KIND = "merge"


@dataclass(frozen=True)
class _Hit:
    """A file, its rows that go, and the numbers of the keys that name them, side by side."""

    file: DataFile
    rows: pa.Array
    numbers: pa.Array


def merge_by_key(snapshot: Snapshot, delta: pa.Table, key: Sequence[str], *, whole: bool) -> Prepared | None:
    """Apply a delta (columns and WEIGHT, 1 or -1) by key. ``whole`` says that rows to delete are in it as they are in
    the table; otherwise they hold the key alone, and the change tells the true rows.

    None where this is not the way: Arrow does not compare the key as Spark does, does not write a column as Spark does,
    or the files are too large. NegativeMultiplicity when a key is absent, CorruptTable when it is there twice.
    """
    keys = pick(snapshot.schema, key)
    plain = all(is_simple(field.dataType) for field in snapshot.schema.fields)
    if not plain or snapshot.partition_by or any(isinstance(f.dataType, DoubleType | FloatType) for f in keys.fields):
        return None
    fields = [StructField(field.name, field.dataType) for field in snapshot.schema.fields]
    given = for_spark(delta, StructType([*fields, StructField(WEIGHT, LongType())]))
    if pc.all(pc.equal(pc.abs(given.column(WEIGHT)), 1)).as_py() is False:
        return None
    going = pc.less(given.column(WEIGHT), 0)
    gone, come = given.filter(going), given.filter(pc.invert(going)).drop_columns([WEIGHT])
    removed = gone.select(keys.names)
    if len(key) > 1 and any(column.null_count for column in removed.columns):
        return None
    files = candidate_files(snapshot, removed, keys) if removed.num_rows else ()
    if not are_plain(files, snapshot.schema):
        return None
    hits = _hits(snapshot, files, removed, keys)
    _check(snapshot, hits, removed)
    if not are_written_anew([hit.file for hit in hits], snapshot.schema):
        return None
    return _merged(snapshot, given if whole else None, gone, come, hits, keys)


def _hits(snapshot: Snapshot, files: Sequence[DataFile], removed: pa.Table, keys: StructType) -> list[_Hit]:
    """The files that hold keys to remove; of each file the key alone is read."""

    def look(file: DataFile) -> _Hit:
        there = read_few(snapshot.location, file.path, keys)
        rows, numbers = matching(there, removed)
        return _Hit(file, rows, numbers)

    with ThreadPoolExecutor(THREADS) as pool:
        return [hit for hit in pool.map(look, files) if len(hit.rows)]


def matching(there: pa.Table, wanted: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Numbers of the rows of ``there`` that are in ``wanted``, and for each the number of the row that it equals."""
    first = wanted.column(0).cast(there.column(0).type).combine_chunks()
    places = pc.index_in(there.column(0), first).combine_chunks()
    rows = pc.indices_nonzero(pc.is_valid(places)).cast(pa.int64())
    if wanted.num_columns == 1:
        return rows, places.take(rows).cast(pa.int64())
    near = there.take(rows).append_column(ROW, rows)
    numbered = wanted.cast(there.schema).append_column(_NUMBER, pa.arange(0, wanted.num_rows))
    found = near.join(numbered, there.column_names, join_type="inner").combine_chunks()
    return _one(found.column(ROW)), _one(found.column(_NUMBER))


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _check(snapshot: Snapshot, hits: Sequence[_Hit], removed: pa.Table) -> None:
    """Every key to remove is there, and once; no key is removed twice."""
    found = pa.concat_arrays([hit.numbers for hit in hits]) if hits else pa.array([], pa.int64())
    distinct = pc.count_distinct(found).as_py()
    place = f"table at {snapshot.location.uri}, version {snapshot.version}"
    if distinct < removed.num_rows:
        raise NegativeMultiplicity(
            "a delta deletes what the table does not hold",
            detail=f"{removed.num_rows - distinct} of {removed.num_rows} rows to delete are not there; {place}",
            hint="reinitialize the table from its sources",
        )
    if len(found) > distinct:
        raise CorruptTable("the key is not unique in the table", detail=place)


def _merged(
    snapshot: Snapshot,
    changes: pa.Table | None,
    gone: pa.Table,
    come: pa.Table,
    hits: Sequence[_Hit],
    keys: StructType,
) -> Prepared:
    """Stage the files and the change; ``changes`` is the change where it is known before files are read."""
    known, numbers = matching(come.select(keys.names), gone.select(keys.names))
    replacing = come.take(known).append_column(_NUMBER, numbers)
    new = come.take(_others(come.num_rows, known))
    taken: list[pa.Table] = []
    makers: list[Callable[[], pa.Table]] = [
        partial(_rewritten, snapshot, hit, replacing, None if changes is not None else taken) for hit in hits
    ]
    makers += in_order(new, keys.names)
    with staging(snapshot.location) as stages:
        staged = stage_made(makers, snapshot, THREADS)
        stages.append(staged.stage_id)
        if not staged.files and not hits:
            discard(snapshot.location, staged.stage_id)
            return Prepared(snapshot.location, snapshot.version)
        told = None
        # Where nothing goes, the new files are the change.
        if gone.num_rows:
            told = stage_change_table(_change(taken, come) if changes is None else changes, snapshot.location)
            stages.append(told.stage_id)
        return Prepared(
            location=snapshot.location,
            read_version=snapshot.version,
            adds=staged.files,
            removes=tuple(hit.file for hit in hits),
            info=note(_KIND, come.num_rows, gone.num_rows, told),
            inserted=come.num_rows,
            deleted=gone.num_rows,
            stage_ids=tuple(stages),
            changes=told,
        )


def _others(count: int, chosen: pa.Array) -> pa.Array:
    """The numbers up to ``count`` that are not among the chosen."""
    everything = pa.arange(0, count)
    return everything if not len(chosen) else everything.filter(pc.invert(pc.is_in(everything, chosen)))


def in_order(rows: pa.Table, key: Sequence[str], most: int = ORDERED_ROWS) -> list[Callable[[], pa.Table]]:
    """What makes the files of new rows: those of near keys together, in files that are not large."""
    if not rows.num_rows:
        return []
    ordered = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in key])) if key else rows
    return [partial(ordered.slice, start, most) for start in range(0, ordered.num_rows, most)]


def _rewritten(snapshot: Snapshot, hit: _Hit, replacing: pa.Table, taken: list[pa.Table] | None) -> pa.Table:
    """What becomes of a file: its rows without those that go, and the rows that replace them."""
    table = read_few(snapshot.location, hit.file.path, snapshot.schema)
    if taken is not None:
        taken.append(table.take(hit.rows))
    come = replacing.filter(pc.is_in(replacing.column(_NUMBER), hit.numbers)).drop_columns([_NUMBER])
    kept = table.take(_others(table.num_rows, hit.rows))
    return pa.concat_tables([kept, come])


def _change(taken: Sequence[pa.Table], come: pa.Table) -> pa.Table:
    """The rows that went and came, with their weights."""
    parts = [table.append_column(WEIGHT, _repeated(-1, table.num_rows)) for table in taken]
    return pa.concat_tables([*parts, come.append_column(WEIGHT, _repeated(1, come.num_rows))])


def _repeated(weight: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(weight, pa.int64()), count)
