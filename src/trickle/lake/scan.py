"""Rows of a version as a Spark DataFrame: the files of the log, read as the log says.

Spark reads the Parquet files by name. What is not in them comes from the log: partition values are joined by file,
deletion vectors are an anti-join on (file, row position), columns younger than a file are NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, NullType, StringType, StructField, StructType

from trickle.algebra.names import INTERNAL_PREFIX, nearest, quote
from trickle.algebra.weights import FILE, ROW
from trickle.engine import Engine
from trickle.errors import UnknownColumn, UnsupportedTable
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.partition import sql_text, typed
from trickle.lake.paths import FileKey, file_key, for_spark, is_hidden
from trickle.lake.snapshot import Snapshot
from trickle.lake.vectors import hidden_rows

KEY = INTERNAL_PREFIX + "key"
_VALUE = INTERNAL_PREFIX + "value_"
_BROADCAST_ROWS = 1_000_000
_SPELLED_OUT = 64
"""Up to this many files are told apart by an expression; more by a join, which costs a job."""


def scan(
    engine: Engine,
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    files: Sequence[DataFile] | None = None,
    located: bool = False,
) -> DataFrame:
    """The rows of a version, or of some of its files. ``located`` adds FILE and ROW."""
    schema = snapshot.schema if columns is None else pick(snapshot.schema, columns)
    chosen = snapshot.files if files is None else files
    return read_files(engine, snapshot.location, schema, chosen, located=located)


def pick(schema: StructType, columns: Iterable[str]) -> StructType:
    """The named columns in the order asked for. UnknownColumn with the nearest name when one is missing."""
    by_key = {field.name.lower(): field for field in schema.fields}
    return StructType([_field(by_key, column) for column in columns])


def read_files(
    engine: Engine, location: Location, schema: StructType, files: Sequence[DataFile], *, located: bool = False
) -> DataFrame:
    """The rows of files, whatever version they belong to, with the columns of ``schema``."""
    groups: dict[tuple[frozenset[str], int], list[DataFile]] = {}
    seen: Counter[str] = Counter()
    for file in files:
        # A path that occurs twice, with different deletion vectors, is read twice.
        groups.setdefault((frozenset(file.partition), seen[file.path]), []).append(file)
        seen[file.path] += 1
    parts = [_Group(engine, location, schema, tuple(group)).read(located) for group in groups.values()]
    if not parts:
        return _empty(engine, schema, located)
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.union(part)
    return rows


@dataclass(frozen=True)
class _Group:
    """Files with the same partition columns."""

    engine: Engine
    location: Location
    schema: StructType
    files: tuple[DataFile, ...]

    def read(self, located: bool) -> DataFrame:
        values = [self._values(file) for file in self.files]
        joined = (located and len(self.files) > 1) or len(set(values)) > 1
        if self._is_plain and len(self.files) <= _SPELLED_OUT:
            return self._located() if located else self._read()
        vectors = [file for file in self.files if file.deletion_vector is not None]
        key = file_key(self.location, self.files)
        rows = self._parquet(key if joined or vectors else None, ROW if located or vectors else None)
        if vectors:
            rows = rows.join(self._hidden(vectors, key), [KEY, ROW], "left_anti")
        if joined:
            rows = rows.join(F.broadcast(self._described(values, key)), KEY)
        return rows.select(*self._output(values[0], joined, located))

    @property
    def _is_plain(self) -> bool:
        """Whether all columns are in the files, and all rows are there."""
        return not (
            self._partition
            or any(file.deletion_vector is not None for file in self.files)
            or any(isinstance(field.dataType, NullType) for field in self.schema.fields)
        )

    def _located(self) -> DataFrame:
        """Rows with their places, told by an expression: a join would cost a job."""
        rows, key = self._read(), file_key(self.location, self.files)
        metadata = rows.metadataColumn("_metadata")
        if len(self.files) == 1:
            file = F.lit(self.files[0].path)
        else:
            named = F.create_map(*(F.lit(part) for f in self.files for part in (key.of_path(f.path), f.path)))
            file = F.element_at(named, key.of_row(metadata))
        return rows.select("*", file.alias(FILE), metadata["row_index"].alias(ROW))

    def _read(self) -> DataFrame:
        hidden = [file.path for file in self.files if is_hidden(file.path)]
        if hidden:
            raise UnsupportedTable(
                "table has a data file whose name Spark ignores",
                detail=f"{hidden[0]} in {self.location.uri}",
                hint="names that begin with _ or . are hidden files to Spark",
            )
        reader = self.engine.spark.read.schema(self._physical).option("recursiveFileLookup", "true")
        return reader.parquet(*(for_spark(self.location, file.path) for file in self.files))

    def _parquet(self, key: FileKey | None, row: str | None) -> DataFrame:
        rows = self._read()
        metadata = rows.metadataColumn("_metadata")
        extra = [] if key is None else [key.of_row(metadata).alias(KEY)]
        extra += [] if row is None else [metadata["row_index"].alias(row)]
        return rows.select(*(F.col(quote(field.name)) for field in self._physical.fields), *extra)

    @property
    def _physical(self) -> StructType:
        """What to look for in the files. Void columns are in none."""
        partition = {name.lower() for name in self.files[0].partition}
        return StructType(
            [
                StructField(field.name, field.dataType)
                for field in self.schema.fields
                if field.name.lower() not in partition and not isinstance(field.dataType, NullType)
            ]
        )

    @property
    def _partition(self) -> list[tuple[str, StructField]]:
        """The wanted partition columns, as the log spells their names and as the schema describes them."""
        by_key = {field.name.lower(): field for field in self.schema.fields}
        return [(name, by_key[name.lower()]) for name in sorted(self.files[0].partition) if name.lower() in by_key]

    def _values(self, file: DataFile) -> tuple[str | None, ...]:
        return tuple(sql_text(file.partition[name], field.dataType, name) for name, field in self._partition)

    def _described(self, values: list[tuple[str | None, ...]], key: FileKey) -> DataFrame:
        """One row for each file: its key, its spelling in the log, its partition values as text."""
        columns = {
            KEY: pa.array([key.of_path(file.path) for file in self.files], pa.string()),
            FILE: pa.array([file.path for file in self.files], pa.string()),
        }
        for index in range(len(self._partition)):
            columns[f"{_VALUE}{index}"] = pa.array([value[index] for value in values], pa.string())
        return self.engine.from_arrow(pa.table(columns))

    def _hidden(self, files: list[DataFile], key: FileKey) -> DataFrame:
        vectors = {file.path: file.deletion_vector for file in files if file.deletion_vector is not None}
        rows = hidden_rows(self.location, vectors.values())
        return hidden_relation(
            self.engine, [(key.of_path(path), pa.array(rows[vector], pa.int64())) for path, vector in vectors.items()]
        )

    def _output(self, values: tuple[str | None, ...], joined: bool, located: bool) -> list[Column]:
        partition = {
            field.name: typed(F.col(f"{_VALUE}{index}") if joined else F.lit(values[index]), field.dataType)
            for index, (_, field) in enumerate(self._partition)
        }
        output = [_column(field.name, field.dataType, partition) for field in self.schema.fields]
        if located:
            output.append((F.col(FILE) if joined else F.lit(self.files[0].path)).alias(FILE))
            output.append(F.col(ROW))
        return output


def same_type(left: DataType, right: DataType) -> bool:
    """Whether two types hold the same values; nullability inside them does not matter."""
    match left, right:
        case ArrayType(), ArrayType():
            return same_type(left.elementType, right.elementType)
        case MapType(), MapType():
            return same_type(left.keyType, right.keyType) and same_type(left.valueType, right.valueType)
        case StructType(), StructType():
            return [f.name for f in left.fields] == [f.name for f in right.fields] and all(
                same_type(a.dataType, b.dataType) for a, b in zip(left.fields, right.fields, strict=True)
            )
    return left == right


def hidden_relation(engine: Engine, hidden: Sequence[tuple[str, pa.Int64Array]]) -> DataFrame:
    """(KEY, ROW) for every hidden row, small enough to broadcast in all but extreme cases."""
    keys = [pa.repeat(pa.scalar(key, pa.string()), len(rows)) for key, rows in hidden]
    table = pa.table({KEY: pa.chunked_array(keys), ROW: pa.chunked_array([rows for _, rows in hidden])})
    relation = engine.from_arrow(table)
    return F.broadcast(relation) if table.num_rows <= _BROADCAST_ROWS else relation


def _column(name: str, kind: DataType, partition: dict[str, Column]) -> Column:
    if name in partition:
        return partition[name].alias(name)
    return F.lit(None).alias(name) if isinstance(kind, NullType) else F.col(quote(name))


def _field(by_key: dict[str, StructField], column: str) -> StructField:
    found = by_key.get(column.lower())
    if found is None:
        guess = nearest(column, [field.name for field in by_key.values()])
        raise UnknownColumn(f"no column {column!r}", hint=f"did you mean {guess}?" if guess else None)
    return found


def _empty(engine: Engine, schema: StructType, located: bool) -> DataFrame:
    plain = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    if located:
        plain = plain.add(FILE, StringType()).add(ROW, LongType())
    # The filter lets the optimiser see that nothing is there: no job.
    return engine.spark.createDataFrame([], plain).where(F.lit(False))
