"""Few rows: Spark computes them, and the driver writes them.

A write by Spark is a job with tasks, a committer and a folder of its own, and takes a hundred times as long as the
Parquet file that comes out of it. So rows that fit on the driver are collected and written there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from trickle.algebra.weights import FILE, ROW
from trickle.engine import Engine, Left
from trickle.engine.arrow import for_spark
from trickle.engine.tuning import Load
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.paths import is_absolute

MOST_ROWS = 100_000
"""Rows of files that are read."""
MOST_COLLECTED = 1_000_000
"""Rows that are collected: where there are more, Spark has to compute them a second time."""
MOST_BYTES = 64 << 20
GROUP_ROWS = 100_000
"""Rows of a row group: where rows lie in some order, a lookup leaves out most groups by their statistics."""
MOST_ANEW = 1 << 30
"""Bytes of files that are read and written anew on the driver, one at a time for each of its threads: Arrow does it
faster than Spark finds out which rows stay."""
MOST_FILE_ANEW = 128 << 20
"""Bytes of one of them: it is held whole."""
MOST_FILE_ROWS = 2_000_000
"""Its rows: few bytes may hold many of them."""
THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Few:
    """Says that rows will be few, most likely, and how much there is to read for them."""

    engine: Engine
    load: Load = "light"

    def collected(self, frame: DataFrame) -> pa.Table | None:
        """The rows; None when they are not few, or when the driver would not write them as Spark does."""
        schema = frame.schema
        if not all(is_simple(field.dataType) for field in schema.fields):
            return None
        found = self.engine.collect_few(frame.limit, MOST_COLLECTED, load=self.load)
        plain = StructType([StructField(field.name, field.dataType) for field in schema.fields])
        return None if isinstance(found, Left) else for_spark(found[0], plain)

    def computed(self, text: str, shape: StructType, beside: Sequence[StructField]) -> pa.Table | Left:
        """The rows of a query that gives the columns of a shape in their types, and some ``beside`` them.

        The limit and the columns' order cost Spark nothing here: it looks at the plan once.
        """
        names = [*shape.names, *(field.name for field in beside)]

        def fits(found: StructType) -> bool:
            types = {field.name: field.dataType for field in found.fields}
            stored = all(is_simple(f.dataType) and types.get(f.name) == f.dataType for f in shape.fields)
            return stored and sorted(types) == sorted(names)

        run = self.engine.collect_few(
            lambda most: self.engine.sql(text, most=most), MOST_COLLECTED, load=self.load, fits=fits
        )
        plain = [StructField(field.name, field.dataType) for field in (*shape.fields, *beside)]
        return run if isinstance(run, Left) else for_spark(run[0].select(names), StructType(plain))


def is_simple(kind: DataType) -> bool:
    """Whether a type is the same to Spark, Arrow and Parquet. Nested types and rarer ones are left to Spark."""
    simple = (BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegralType)
    return isinstance(kind, (*simple, TimestampType, TimestampNTZType)) or kind == StringType()


def are_few(files: Sequence[DataFile], schema: StructType, most: int = MOST_ROWS) -> bool:
    """Whether files are read on the driver: small, and all of their contents in them."""
    return are_plain(files, schema) and not are_many(files, most) and sum(file.size for file in files) <= MOST_BYTES


def are_written_anew(files: Sequence[DataFile], schema: StructType) -> bool:
    """Whether the driver changes files: it holds each of them, and writes what Spark would write."""
    return (
        are_plain(files, schema)
        and all(file.size <= MOST_FILE_ANEW and not are_many([file], MOST_FILE_ROWS) for file in files)
        and sum(file.size for file in files) <= MOST_ANEW
    )


def are_plain(files: Sequence[DataFile], schema: StructType) -> bool:
    """Whether all that is wanted is in the files, in types that the driver reads as Spark does."""
    simple = all(is_simple(field.dataType) for field in schema.fields)
    return simple and not any(file.partition or file.deletion_vector or is_absolute(file.path) for file in files)


def are_many(files: Sequence[DataFile], most: int) -> bool:
    """Whether files have more rows than that, or nobody knows."""
    return any(file.rows is None for file in files) or sum(file.rows or 0 for file in files) > most


def read_few(location: Location, path: str, schema: StructType, beside: Sequence[StructField] = ()) -> pa.Table:
    """The rows of a file with the columns of the schema, found without regard to case; those it lacks are NULL.

    Columns ``beside`` the schema have to be there.
    """
    with opened(location, path) as file:
        return read_columns(file, schema, beside)


@contextmanager
def opened(location: Location, path: str) -> Iterator[pq.ParquetFile]:
    """A file of a table, by the path that the log has."""
    filesystem, root = location.filesystem()
    place = unquote(path)
    with (
        filesystem.open_input_file(f"{root}/{place}" if root else place) as source,
        # Some writers keep timestamps in twelve bytes. As nanoseconds, Arrow's choice, those after 2262 become others.
        pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file,
    ):
        yield file


def read_columns(
    file: pq.ParquetFile,
    schema: StructType,
    beside: Sequence[StructField] = (),
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """The same as ``read_few`` for a file that is open, or for some of its row groups."""
    there = {name.lower(): name for name in file.schema_arrow.names}
    wanted = [there[field.name.lower()] for field in schema.fields if field.name.lower() in there]
    groups = range(file.num_row_groups) if groups is None else groups
    table = file.read_row_groups(groups, columns=[*wanted, *(field.name for field in beside)])
    rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    for missing in (field for field in schema.fields if field.name.lower() not in there):
        table = table.append_column(missing.name, pa.nulls(rows))
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return for_spark(table, StructType([*fields, *beside]))


def with_places(schema: StructType) -> StructType:
    """The columns of rows that say where they lie."""
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return StructType([*fields, StructField(FILE, StringType()), StructField(ROW, LongType())])


def rows_at_hand(
    location: Location, files: Sequence[DataFile], schema: StructType, *, located: bool, most: int
) -> tuple[pa.Table, StructType] | None:
    """All rows of files, read on the driver, with FILE and ROW when ``located``; None when they are not few."""
    if not files or not are_few(files, schema, most):
        return None
    parts = []
    for file in files:
        table = read_few(location, file.path, schema)
        if located:
            table = table.append_column(FILE, pa.repeat(pa.scalar(file.path, pa.string()), table.num_rows))
            table = table.append_column(ROW, pa.arange(0, table.num_rows))
        parts.append(table)
    plain = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    return pa.concat_tables(parts), with_places(schema) if located else plain


def write_few(location: Location, folder: str, tables: Sequence[pa.Table]) -> None:
    """Write a file for each table that has rows, as Spark would lay it out."""
    write_made(location, folder, [at_hand(table) for table in tables])


def at_hand(table: pa.Table) -> Callable[[], pa.Table]:
    """What makes a table that is there already."""
    return lambda: table


def write_made(location: Location, folder: str, makers: Sequence[Callable[[], pa.Table]], threads: int = 1) -> None:
    """The same for tables that are made when their turn comes, some at a time."""
    filesystem, root = location.filesystem()
    place = f"{root}/{folder}" if root else folder
    # A name that no other stage has: rows are told apart by the bare names of their files.
    unique = folder.rpartition("/")[2].removeprefix("data-")
    if location.is_local:
        Path(place).mkdir(parents=True)

    def write(number: int, make: Callable[[], pa.Table]) -> None:
        table = make()
        if not table.num_rows:
            return
        with filesystem.open_output_stream(f"{place}/part-{number:05d}-{unique}.parquet") as stream:
            pq.write_table(
                table,
                stream,
                row_group_size=GROUP_ROWS,
                compression="snappy",
                store_decimal_as_integer=True,
                write_page_index=True,
            )

    if threads == 1 or len(makers) <= 1:
        for number, make in enumerate(makers):
            write(number, make)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(write, number, make) for number, make in enumerate(makers)]:
            done.result()
