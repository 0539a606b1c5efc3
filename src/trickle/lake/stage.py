"""Staged files: Spark writes them into the table's folder, and nobody sees them until a commit names them.

Partition values leave the files and live in the log. Spark's own folder names cannot carry them (NULL and '' look
alike, text is escaped, floats and times depend on the session), so the folders are named after helper columns that
hold the value as plain lower-case text or as hexadecimal digits: the log's path then needs no quoting at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StructField, StructType, TimestampType

from trickle.algebra.names import quote
from trickle.algebra.weights import HIDDEN, WEIGHT
from trickle.engine.failures import spark_errors
from trickle.errors import InvalidData
from trickle.lake.assign import conform
from trickle.lake.datafile import DataFile
from trickle.lake.few import Few, at_hand, write_few, write_made
from trickle.lake.footers import Described, describe
from trickle.lake.location import Location, StoredFile
from trickle.lake.snapshot import Snapshot
from trickle.lake.stages import INNER_FOLDER, new_stage_id

CHANGES_FOLDER = "_trickle_changes"

GROUP = "__trickle_group"
"""Number of the group of rows that share their data files."""

FILE_ROWS = 500_000
ORDERED_ROWS = 250_000
"""Rows of a file, and of one of a table that lies in the order of a key. To change a row, its file is rewritten."""
GROUP_BYTES = 8 << 20
"""Bytes of a row group: where rows lie in some order, a lookup leaves out most groups by their statistics."""

_NULL = "n"
_PLAIN = "v"
_HEXADECIMAL = "x"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Target:
    """What staged files are for: a table's place and shape."""

    location: Location
    schema: StructType
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def of(table: Snapshot | Target) -> Target:
        """The shape of a table that is open."""
        return table if isinstance(table, Target) else Target(table.location, table.schema, table.partition_by)

    @property
    def stored_columns(self) -> StructType:
        """The columns that are in the files."""
        return StructType([f for f in self.schema.fields if f.name not in self.partition_by])

    @property
    def partition_fields(self) -> list[StructField]:
        return [self.schema[name] for name in self.partition_by]


@dataclass(frozen=True)
class Staged:
    """Data files that are written and not yet committed."""

    stage_id: str
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows or 0 for file in self.files)


@dataclass(frozen=True)
class ChangeFiles:
    """Exact change rows that are written and not yet named by a commit."""

    stage_id: str
    files: tuple[tuple[str, int], ...]
    """Path relative to the table, and number of rows."""
    inserted: int
    deleted: int
    size: int
    """Bytes of all files."""
    hidden: int = 0
    """Pairs of a deletion and an insertion that differ in internal columns only: no change to readers."""

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.files)


def stage(
    df: DataFrame,
    table: Snapshot | Target,
    *,
    small: bool = False,
    grouped: bool = False,
    few: Few | None = None,
    order: Sequence[str] = (),
) -> Staged:
    """Write rows as data files of the table, invisible until committed.

    ``small`` gathers them in one task; rows that are ``few`` are written by the driver. With ``grouped``, a column
    GROUP of whole numbers is there besides the table's own, and rows of different groups never share a file. Rows in
    an ``order`` lie in it inside of files that are not large, so that rows of near values share few of them.
    """
    target = Target.of(table)
    if few is not None and not target.partition_by:
        rows = few.collected(conform(df, target.schema))
        if rows is not None:
            return stage_few([rows], target)
    helpers = _helper_names(target.schema, len(target.partition_by) + grouped)
    frame = _with_helpers(conform(df, target.schema, beside=(GROUP,) if grouped else ()), target, helpers)
    if small:
        frame = frame.coalesce(1)
    elif helpers and not grouped:
        # Otherwise every task would write a file into every partition.
        frame = frame.hint("rebalance", *(F.col(name) for name in helpers))
    if order:
        frame = frame.sortWithinPartitions(*(F.col(quote(name)) for name in (*helpers, *order)))
    stage_id = new_stage_id()
    try:
        _write(frame, target.location, data_folder(stage_id), helpers, ORDERED_ROWS if order else FILE_ROWS)
        return Staged(stage_id, _describe(target, stage_id, helpers))
    except BaseException:
        discard(target.location, stage_id)
        raise


def stage_few(tables: Sequence[pa.Table], table: Snapshot | Target) -> Staged:
    """Write rows that are on the driver: each Arrow table, of the columns of a table without partitions, a file."""
    return stage_made([at_hand(one) for one in tables], table)


def stage_made(makers: Sequence[Callable[[], pa.Table]], table: Snapshot | Target, threads: int = 1) -> Staged:
    """The same for Arrow tables that are made when their turn comes, by some threads."""
    target = Target.of(table)
    stage_id = new_stage_id()
    try:
        write_made(target.location, data_folder(stage_id), makers, threads)
        return Staged(stage_id, _describe(target, stage_id, ()))
    except BaseException:
        discard(target.location, stage_id)
        raise


def stage_changes(
    rows: DataFrame | pa.Table, location: Location, *, few: Few | None = None
) -> tuple[ChangeFiles, pa.Table | None]:
    """Write change rows (the table's columns, the weight, perhaps where the row lies) beside the data files.

    Those that are ``few``, or at hand, are returned too.
    """
    if isinstance(rows, pa.Table):
        return stage_change_table(rows, location), rows
    held = few.collected(rows) if few is not None else None
    if held is not None:
        place = held.column_names.index(WEIGHT)
        held = held.set_column(place, WEIGHT, held.column(WEIGHT).cast(pa.int64()))
        return stage_change_table(held, location), held
    stage_id = new_stage_id()
    try:
        _write(rows.withColumn(WEIGHT, F.col(WEIGHT).cast("bigint")), location, changes_folder(stage_id), ())
        return _count_changes(location, stage_id), None
    except BaseException:
        discard(location, stage_id)
        raise


def stage_change_table(rows: pa.Table, location: Location) -> ChangeFiles:
    """Write change rows that are on the driver, however many they are."""
    stage_id = new_stage_id()
    if not rows.num_rows:
        return ChangeFiles(stage_id, (), 0, 0, 0)
    try:
        write_few(location, changes_folder(stage_id), [rows])
        written = _written(location, changes_folder(stage_id))
        size = sum(file.size for file in written)
        hidden = pc.sum(rows.column(HIDDEN)).as_py() or 0 if HIDDEN in rows.column_names else 0
        files = tuple((file.path, rows.num_rows) for file in written)
        return ChangeFiles(stage_id, files, *_by_sign(rows.column(WEIGHT)), size, hidden // 2)
    except BaseException:
        discard(location, stage_id)
        raise


def _by_sign(weights: pa.ChunkedArray) -> tuple[int, int]:
    """How many rows are inserted, and how many deleted."""
    return pc.sum(pc.max_element_wise(weights, 0)).as_py(), -pc.sum(pc.min_element_wise(weights, 0)).as_py()


def discard(location: Location, stage_id: str) -> None:
    """Remove what was staged under this id; nothing happens when there is nothing."""
    location.delete(data_folder(stage_id))
    location.delete(changes_folder(stage_id))


def discard_stages(location: Location, prefix: str) -> None:
    """Remove everything that was staged under ids with this prefix, in the table and in its inner tables."""
    filesystem, root = location.filesystem()
    inner = pafs.FileSelector(f"{root}/{INNER_FOLDER}" if root else INNER_FOLDER, allow_not_found=True)
    for found in filesystem.get_file_info(inner):
        discard_stages(location.child(INNER_FOLDER, found.base_name), prefix)
    for parent, mark in (("", data_folder(prefix)), (CHANGES_FOLDER, prefix)):
        folder = "/".join(part for part in (root, parent) if part)
        for found in filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True)):
            if found.base_name.startswith(mark):
                location.delete(f"{parent}/{found.base_name}" if parent else found.base_name)


def data_folder(stage_id: str) -> str:
    """The folder of staged data files, below the table."""
    return f"data-{stage_id}"


def changes_folder(stage_id: str) -> str:
    """The folder of staged change rows, below the table."""
    return f"{CHANGES_FOLDER}/{stage_id}"


def stage_of(path: str) -> str | None:
    """The stage that a file below a table belongs to.

    >>> stage_of("data-0a1b/part-0.parquet")
    '0a1b'
    """
    first, _, rest = path.partition("/")
    if first == CHANGES_FOLDER:
        return rest.partition("/")[0] or None
    return first.removeprefix("data-") if first.startswith("data-") and rest else None


def _write(frame: DataFrame, location: Location, folder: str, helpers: Sequence[str], most_rows: int = 0) -> None:
    """Write a folder of files, of any size or of so many rows at the most."""
    writer = (
        frame.write.mode("error")
        .option("compression", "snappy")
        .option("maxRecordsPerFile", most_rows)
        .option("parquet.block.size", GROUP_BYTES)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    )
    with spark_errors():
        (writer.partitionBy(*helpers) if helpers else writer).parquet(location.child(folder).for_spark)


def _written(location: Location, folder: str) -> list[StoredFile]:
    """The Parquet files of a folder. What Spark leaves beside them (checksums) is removed."""
    found = list(location.walk(folder))
    for file in found:
        if not file.path.endswith(".parquet"):
            location.delete(file.path)
    return [file for file in found if file.path.endswith(".parquet")]


def _helper_names(schema: StructType, count: int) -> list[str]:
    taken = {name.lower() for name in schema.names}
    prefix = "p"
    while any(f"{prefix}{n}" in taken for n in range(count)):
        prefix += "p"
    return [f"{prefix}{n}" for n in range(count)]


def _with_helpers(frame: DataFrame, target: Target, helpers: Sequence[str]) -> DataFrame:
    stored = [F.col(quote(name)) for name in target.stored_columns.names]
    values = [_encoded(F.col(quote(f.name)), f.dataType) for f in target.partition_fields]
    if GROUP in frame.columns:
        values.append(F.col(GROUP).cast("string"))
    named = [value.alias(name) for value, name in zip(values, helpers, strict=True)]
    return frame.select(*stored, *named)


def _encoded(value: Column, kind: DataType) -> Column:
    # Instants as numbers: their text would depend on the session's time zone.
    text = F.unix_micros(value).cast("string") if isinstance(kind, TimestampType) else value.cast("string")
    plain = text.rlike("^[a-z0-9_-]*$")
    return (
        F.when(value.isNull(), F.lit(_NULL))
        .when(plain, F.concat(F.lit(_PLAIN), text))
        .otherwise(F.concat(F.lit(_HEXADECIMAL), F.hex(F.encode(text, "UTF-8"))))
    )


def _decoded(text: str, field: StructField) -> str | None:
    """The partition value as the log spells it."""
    mark, rest = text[:1], text[1:]
    if mark == _NULL:
        return None
    value = bytes.fromhex(rest).decode() if mark == _HEXADECIMAL else rest
    if value == "":
        raise InvalidData(
            f"partition column {field.name!r} holds an empty text",
            detail="every Delta reader takes an empty partition value for NULL",
            hint="write NULL, or a table that is not partitioned by this column",
        )
    match field.dataType:
        case TimestampType():
            return (_EPOCH + timedelta(microseconds=int(value))).strftime("%Y-%m-%d %H:%M:%S.%f")
        case DecimalType():
            return format(Decimal(value), "f")
        case _:
            return value


def _describe(target: Target, stage_id: str, helpers: Sequence[str]) -> tuple[DataFile, ...]:
    found = [
        Described(file, _partition(file.path, target, helpers))
        for file in _written(target.location, data_folder(stage_id))
    ]
    files = describe(target.location, found, target.stored_columns)
    for file in files:
        if file.rows == 0:
            target.location.delete(file.path)
    kept = tuple(file for file in files if file.rows)
    _check_not_null(target, kept)
    return kept


def _partition(path: str, target: Target, helpers: Sequence[str]) -> Mapping[str, str | None]:
    folders = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    return {
        field.name: _decoded(folders[helper], field)
        for field, helper in zip(target.partition_fields, helpers, strict=False)
    }


def _check_not_null(target: Target, files: Iterable[DataFile]) -> None:
    required = [f.name for f in target.schema.fields if not f.nullable]
    for file in files:
        for name in required:
            if _holds_null(target, file, name):
                raise InvalidData(
                    f"column {name!r} is NOT NULL and a row has NULL there",
                    hint="filter such rows out, or give them a value with COALESCE",
                )


def _holds_null(target: Target, file: DataFile, name: str) -> bool:
    if name in target.partition_by:
        return file.partition[name] is None
    count = file.nulls.get(name)
    if count is not None:
        return count > 0
    # Nested columns have no count of their own in the footer.
    filesystem, root = target.location.filesystem()
    source = pq.ParquetFile(f"{root}/{file.path}" if root else file.path, filesystem=filesystem)
    with source:
        return any(batch.column(0).null_count for batch in source.iter_batches(columns=[name]))


def _count_changes(location: Location, stage_id: str) -> ChangeFiles:
    inserted = deleted = size = hidden = 0
    files: list[tuple[str, int]] = []
    filesystem, root = location.filesystem()
    for file in _written(location, changes_folder(stage_id)):
        place = f"{root}/{file.path}" if root else file.path
        marked = HIDDEN in pq.read_schema(place, filesystem=filesystem).names
        wanted = [WEIGHT, HIDDEN] if marked else [WEIGHT]
        rows = pq.read_table(place, columns=wanted, filesystem=filesystem, partitioning=None)
        weights = rows.column(WEIGHT)
        if len(weights) == 0:
            location.delete(file.path)
            continue
        files.append((file.path, len(weights)))
        size += file.size
        come, go = _by_sign(weights)
        inserted, deleted = inserted + come, deleted + go
        hidden += pc.sum(rows.column(HIDDEN)).as_py() or 0 if marked else 0
    return ChangeFiles(stage_id, tuple(files), inserted, deleted, size, hidden // 2)
