"""Changing a table's rows by replacing the files that hold them, and only those.

Rows to delete are known by where they lie (FILE, ROW). The files that hold them are read again without these rows and
written anew, each into files of its own, so that ranges of keys stay narrow; a row to insert that names a FILE goes
where that file's rows go, all others into new files. Change rows are staged first and read back from there: what
computes them runs once, so that the table and its change can never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from trickle.algebra.names import quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.errors import CorruptTable, InternalError, NegativeMultiplicity
from trickle.lake.changerows import ChangeRows, Victims
from trickle.lake.changes import consolidate
from trickle.lake.commit import refuse_vectors
from trickle.lake.datafile import DataFile
from trickle.lake.few import MOST_COLLECTED, THREADS, Few, are_few, are_written_anew, at_hand, read_few
from trickle.lake.prepared import Prepared, note, staging
from trickle.lake.scan import read_files, scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import FILE_ROWS, GROUP, Staged, Target, discard, stage, stage_changes, stage_made
from trickle.lake.types import storable

__all__ = ["Prepared", "append", "apply_changes", "insert_rows", "overwrite", "replace_rows", "rewrite_files"]

ONE_TASK_BYTES = 16 << 20
"""Files of this size together are rewritten by one task: starting more costs longer than it saves."""
_SPELLED_OUT = 32
"""Up to this many files are told apart by an expression; more by a join, which costs a job."""
_SPELLED_OUT_ROWS = 5_000
SHUFFLE_BYTES = 64 << 20
"""Up to this size rows are shuffled so that each old file becomes one new file; beyond it that costs too much."""


def append(
    engine: Engine,
    table: Snapshot | Target,
    rows: DataFrame | pa.Table,
    *,
    read_version: int | None = None,
    few: Few | None = None,
) -> Prepared:
    """New rows in new files."""
    version = table.version if isinstance(table, Snapshot) else read_version
    if version is None:
        raise InternalError("append to a target needs the version that it is based on")
    staged = stage(_frame(engine, table, rows), table, few=few)
    return Prepared(
        location=table.location,
        read_version=version,
        adds=staged.files,
        info=note("append", staged.rows, 0),
        inserted=staged.rows,
        stage_ids=(staged.stage_id,),
    )


def _frame(engine: Engine, table: Snapshot | Target, rows: DataFrame | pa.Table) -> DataFrame:
    if not isinstance(rows, pa.Table):
        return rows
    # NULL in a NOT NULL column is refused where all rows are, when they are staged.
    return engine.from_arrow(rows, StructType([StructField(f.name, f.dataType) for f in table.schema.fields]))


def overwrite(
    engine: Engine,
    snapshot: Snapshot,
    df: DataFrame,
    *,
    difference: bool,
    schema: StructType | None = None,
    few: Few | None = None,
    order: Sequence[str] = (),
) -> Prepared:
    """New contents, perhaps with a new schema. With ``difference``, readers see the rows that differ and no others.

    When no row differs, there is nothing to commit. ``order`` are the columns by which rows will be looked up.
    """
    if difference and schema is not None:
        raise InternalError("contents of different schemas have no difference")
    refuse_vectors(snapshot.location, snapshot.files)
    with staging(snapshot.location) as stages:
        shape = snapshot.schema if schema is None else storable(schema)
        target = Target(snapshot.location, shape, snapshot.partition_by)
        staged = stage(df, target, few=few, order=order)
        stages.append(staged.stage_id)
        old = sum(file.live_rows or 0 for file in snapshot.files)
        change = None
        # Where one side is empty, the files themselves are the difference.
        if difference and snapshot.files and staged.files:
            rows = _difference(engine, snapshot, staged.files)
            both_few = few if are_few(snapshot.files, shape) else None
            change, _ = stage_changes(rows, snapshot.location, few=both_few)
            stages.append(change.stage_id)
            if not change.files:
                for stage_id in stages:
                    discard(snapshot.location, stage_id)
                return Prepared(snapshot.location, snapshot.version)
        inserted, deleted = (change.inserted, change.deleted) if change else (staged.rows, old)
        return Prepared(
            location=snapshot.location,
            read_version=snapshot.version,
            adds=staged.files,
            removes=snapshot.files,
            info=note("overwrite", inserted, deleted, change),
            inserted=inserted,
            deleted=deleted,
            stage_ids=tuple(stages),
            schema=shape if schema is not None else None,
            changes=change,
        )


def _difference(engine: Engine, snapshot: Snapshot, files: Sequence[DataFile]) -> DataFrame:
    old = scan(engine, snapshot).withColumn(WEIGHT, F.lit(-1))
    new = read_files(engine, snapshot.location, snapshot.schema, files).withColumn(WEIGHT, F.lit(1))
    return consolidate(old.union(new))


def replace_rows(
    engine: Engine,
    snapshot: Snapshot,
    change_rows: DataFrame | pa.Table,
    *,
    kind: str = "merge",
    few: Few | None = None,
) -> Prepared:
    """Apply located change rows: the table's columns, WEIGHT, and FILE and ROW of every row to delete.

    FILE of a row to insert is where it should go, NULL when that does not matter.
    """
    with staging(snapshot.location) as stages:
        staged, held = stage_changes(change_rows, snapshot.location, few=few)
        stages.append(staged.stage_id)
        rows = ChangeRows(engine, snapshot.location, staged, held)
        if not staged.files:
            discard(snapshot.location, staged.stage_id)
            return Prepared(snapshot.location, snapshot.version)
        return apply_changes(engine, snapshot, rows, stages, kind)


def apply_changes(engine: Engine, snapshot: Snapshot, rows: ChangeRows, stages: list[str], kind: str) -> Prepared:
    """Apply change rows that are staged already; stages made on the way join the list."""
    staged = rows.staged
    if not staged.deleted:
        return insert_rows(snapshot, rows, kind)
    adds, removes = rewrite_files(engine, snapshot, rows.victims(), rows, stages)
    return Prepared(
        location=snapshot.location,
        read_version=snapshot.version,
        adds=adds,
        removes=removes,
        info=note(kind, staged.inserted - staged.hidden, staged.deleted - staged.hidden, staged),
        inserted=staged.inserted - staged.hidden,
        deleted=staged.deleted - staged.hidden,
        stage_ids=tuple(stages),
        changes=staged,
    )


def insert_rows(snapshot: Snapshot, rows: ChangeRows, kind: str) -> Prepared:
    """Staged change rows that delete nothing, as new files: these are the change, the staged rows are discarded."""
    if _on_driver(snapshot, (), rows):
        added = stage_made(_in_files(rows.local_inserts(snapshot.schema)), snapshot, THREADS)
    else:
        added = stage(rows.inserts(snapshot.schema), snapshot, small=rows.is_local)
    discard(snapshot.location, rows.staged.stage_id)
    return Prepared(
        location=snapshot.location,
        read_version=snapshot.version,
        adds=added.files,
        info=note(kind, added.rows, 0),
        inserted=added.rows,
        stage_ids=(added.stage_id,),
    )


def rewrite_files(
    engine: Engine, snapshot: Snapshot, victims: Victims, rows: ChangeRows, stages: list[str], *, placed: bool = True
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """Files to add and to remove so that the victims (FILE, ROW) go and the rows to insert come.

    ``placed`` rows say by FILE where they should go.
    """
    touched = _touched(snapshot, victims.places)
    removes = tuple(file for file, _ in touched)
    refuse_vectors(snapshot.location, removes)
    partly = [file for file, count in touched if count != file.live_rows]
    if not partly and not rows.staged.inserted:
        return (), removes
    if _on_driver(snapshot, partly, rows):
        staged = stage_made(_rewritten(snapshot, removes, partly, victims.places, rows, placed), snapshot, THREADS)
    else:
        staged = _rewrite(engine, snapshot, removes, partly, victims, rows, placed)
    stages.append(staged.stage_id)
    return staged.files, removes


def _on_driver(snapshot: Snapshot, files: Sequence[DataFile], rows: ChangeRows) -> bool:
    is_there = rows.is_local or rows.held is not None
    # Each row as often as its weight says.
    is_there = is_there and rows.staged.inserted <= MOST_COLLECTED
    return is_there and not snapshot.partition_by and are_written_anew(files, snapshot.schema)


def _rewritten(
    snapshot: Snapshot,
    removes: Sequence[DataFile],
    partly: Sequence[DataFile],
    places: pa.Table,
    rows: ChangeRows,
    placed: bool,
) -> list[Callable[[], pa.Table]]:
    """On the driver: what makes of each file what becomes of it, and the rows that belong to no file."""
    schema, paths = snapshot.schema, pa.array([file.path for file in removes], pa.string())
    inserts = rows.local_inserts(schema, (FILE,) if placed else ())
    if not placed:
        inserts = inserts.append_column(FILE, pa.nulls(inserts.num_rows, pa.string()))
    *come, elsewhere = _by_file(inserts, paths)
    gone = _by_file(places, paths)
    stay = {file.path for file in partly}
    makers: list[Callable[[], pa.Table]] = []
    for number, file in enumerate(removes):
        new = come[number].select(schema.names)
        old = gone[number].column(ROW)
        makers.append(partial(_changed, snapshot, file, old, new) if file.path in stay else at_hand(new))
    return [*makers, *_in_files(elsewhere.select(schema.names))]


def _by_file(rows: pa.Table, paths: pa.Array) -> list[pa.Table]:
    """The rows of each FILE in the order of the paths, and at last those of no such file."""
    numbers = pc.fill_null(pc.index_in(rows.column(FILE).cast(pa.string()), paths), len(paths))
    counted = numbers.value_counts()
    counts = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    ordered = rows.take(pc.sort_indices(numbers))
    ends = [*accumulate(counts.get(number, 0) for number in range(len(paths) + 1))]
    return [ordered.slice(start, end - start) for start, end in pairwise([0, *ends])]


def _in_files(rows: pa.Table) -> list[Callable[[], pa.Table]]:
    """What makes new files, none of them too long."""
    return [at_hand(rows.slice(start, FILE_ROWS)) for start in range(0, rows.num_rows, FILE_ROWS)]


def _changed(snapshot: Snapshot, file: DataFile, gone: pa.ChunkedArray, come: pa.Table) -> pa.Table:
    table = read_few(snapshot.location, file.path, snapshot.schema)
    stays = pc.invert(pc.is_in(pa.arange(0, table.num_rows), gone.combine_chunks()))
    return pa.concat_tables([table.filter(stays), come])


def _rewrite(
    engine: Engine,
    snapshot: Snapshot,
    removes: Sequence[DataFile],
    partly: Sequence[DataFile],
    victims: Victims,
    rows: ChangeRows,
    placed: bool,
) -> Staged:
    """In Spark."""
    groups = {file.path: number for number, file in enumerate(removes)}
    parts = []
    if partly:
        parts.append(_grouped(engine, _kept(engine, snapshot, partly, victims), groups))
    if rows.staged.inserted:
        inserts = rows.inserts(snapshot.schema, (FILE,) if placed else ())
        named = inserts if placed else inserts.withColumn(FILE, F.lit(None).cast("string"))
        parts.append(_grouped(engine, named, groups))
    size = sum(file.size for file in partly)
    all_rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    if ONE_TASK_BYTES < size <= SHUFFLE_BYTES:
        all_rows = all_rows.repartition(GROUP)
    return stage(all_rows, snapshot, small=size <= ONE_TASK_BYTES, grouped=True)


def _touched(snapshot: Snapshot, places: pa.Table) -> list[tuple[DataFile, int]]:
    """The files that hold victims, with the number of them."""
    by_path = {file.path: file for file in snapshot.files}
    if places.group_by([FILE, ROW]).aggregate([]).num_rows != places.num_rows:
        raise NegativeMultiplicity("a change deletes the same row twice", detail=f"table at {snapshot.location.uri}")
    counted = places.group_by(FILE).aggregate([([], "count_all")])
    counts = dict(zip(counted.column(FILE).to_pylist(), counted.column("count_all").to_pylist(), strict=True))
    unknown = sorted(str(path) for path in counts if path not in by_path)
    if unknown:
        raise CorruptTable(
            f"a change deletes rows of a file that is not in version {snapshot.version}",
            detail=f"{unknown[0]} in {snapshot.location.uri}",
        )
    return [(by_path[path], count) for path, count in sorted(counts.items())]


def _kept(engine: Engine, snapshot: Snapshot, files: Sequence[DataFile], victims: Victims) -> DataFrame:
    rows = scan(engine, snapshot, files=files, located=True)
    if victims.places.num_rows <= _SPELLED_OUT_ROWS and len(files) <= _SPELLED_OUT:
        return rows.where(~_among(victims.places)).drop(ROW)
    return rows.join(victims.frame, [FILE, ROW], "left_anti").drop(ROW)


def _among(places: pa.Table) -> Column:
    """Whether a row lies at one of these places, as an expression: a join would cost a job."""
    rows: dict[str, list[int]] = {}
    for file, row in zip(places.column(FILE).to_pylist(), places.column(ROW).to_pylist(), strict=True):
        rows.setdefault(file, []).append(row)
    found = F.lit(False)
    for file, numbers in sorted(rows.items()):
        listed = F.expr(f"{quote(ROW)} IN ({', '.join(map(str, numbers))})")
        found = found | ((F.col(FILE) == F.lit(file)) & listed)
    return found


def _grouped(engine: Engine, rows: DataFrame, groups: Mapping[str, int]) -> DataFrame:
    """The rows with the number of their group in place of FILE; rows that belong to no file are a group together."""
    others = F.lit(len(groups))
    columns = [F.col(quote(name)) for name in rows.columns if name != FILE]
    if len(groups) <= _SPELLED_OUT:
        spelled = F.create_map(*(F.lit(part) for pair in groups.items() for part in pair))
        return rows.select(*columns, F.coalesce(F.try_element_at(spelled, F.col(FILE)), others).alias(GROUP))
    numbers = pa.table({FILE: pa.array(groups.keys(), pa.string()), GROUP: pa.array(groups.values(), pa.int32())})
    joined = rows.join(F.broadcast(engine.from_arrow(numbers)), FILE, "left")
    return joined.select(*columns, F.coalesce(F.col(GROUP), others).alias(GROUP))
