"""Tables for the tests of the write side, and what other readers see in them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine
from trickle.lake.changes import changes, consolidate
from trickle.lake.commit import TableCommit, commit
from trickle.lake.create import create
from trickle.lake.datafile import DataFile
from trickle.lake.footers import Described, describe_file
from trickle.lake.location import Location
from trickle.lake.log import commit_path
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import append
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.types import arrow_schema

Row = tuple[Any, ...]
NUMBERS = StructType([StructField("id", LongType())])


def shape(ddl: str) -> StructType:
    """A schema from DDL without a Spark session: pyspark parses simple types by itself.

    Only what the tests need: ``name type [NOT NULL]``, comma separated, types as Delta's JSON names them.
    """
    fields = []
    for part in ddl.split(","):
        name, kind, *rest = part.split()
        field = {"name": name, "type": kind.replace(";", ","), "nullable": rest != ["NOT", "NULL"], "metadata": {}}
        fields.append(field)
    return StructType.fromJson({"type": "struct", "fields": fields})


def write_numbers(location: Location, numbers: Iterable[int], name: str) -> DataFile:
    """A data file with a column id, written without Spark."""
    return write_file(location, pa.table({"id": pa.array(numbers, pa.int64())}), NUMBERS, name)


def write_file(
    location: Location,
    table: pa.Table,
    schema: StructType,
    name: str,
    partition: Mapping[str, str | None] | None = None,
) -> DataFile:
    """A data file of the table, written without Spark and not committed."""
    path = Path(location.uri, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    stored = next(file for file in location.walk() if file.path == name)
    return describe_file(location, Described(stored, partition or {}), schema)


def numbers_table(place: Path, *files: Iterable[int]) -> Snapshot:
    """A table with a column id and one data file for each of the given sets of numbers."""
    snapshot = create(Location.of(place), NUMBERS)
    adds = tuple(write_numbers(snapshot.location, ids, f"data-{n}/part.parquet") for n, ids in enumerate(files))
    if adds:
        commit(TableCommit(snapshot.location, 0, adds=adds))
    return open_snapshot(snapshot.location)


def filled(
    engine: Engine, place: Path, schema: StructType, rows: Sequence[Row], partition_by: Sequence[str] = ()
) -> Snapshot:
    """A table with these rows."""
    snapshot = create(Location.of(place), schema, partition_by=partition_by)
    if not rows:
        return snapshot
    return committed(append(engine, snapshot, frame(engine, schema, rows).coalesce(1)))


def clustered(engine: Engine, place: Path, files: int, rows_each: int) -> Snapshot:
    """A table of (k, v) with many files, each with its own range of k."""
    schema = shape("k long, v string")
    snapshot = create(Location.of(place), schema)
    adds = []
    for n in range(files):
        keys = range(n * rows_each, (n + 1) * rows_each)
        table = pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{k}" for k in keys]})
        adds.append(write_file(snapshot.location, table, schema, f"data-{n:03}/part.parquet"))
    commit(TableCommit(snapshot.location, 0, adds=tuple(adds)))
    return open_snapshot(snapshot.location)


def frame(engine: Engine, schema: StructType, rows: Sequence[Row]) -> DataFrame:
    """Rows as a DataFrame, through Arrow. NULL is let through: to refuse it is the table's affair."""
    nullable = StructType([StructField(f.name, f.dataType) for f in schema.fields])
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in schema.fields]
    return engine.from_arrow(pa.table(columns, schema=arrow_schema(nullable)), nullable)


def delta(engine: Engine, schema: StructType, rows: Sequence[tuple[Row, int]]) -> DataFrame:
    """Weighted rows as a DataFrame."""
    weighted = StructType([*schema.fields, StructField(WEIGHT, LongType())])
    return frame(engine, weighted, [(*row, weight) for row, weight in rows])


def committed(prepared: Prepared) -> Snapshot:
    """The table after the change."""
    return open_snapshot(prepared.location, commit(prepared.as_commit()))


def contents(engine: Engine, snapshot: Snapshot) -> Counter[Row]:
    """The rows that Trickle reads, with their number."""
    return counted(scan(engine, snapshot).toArrow())


def net_changes(engine: Engine, snapshot: Snapshot, since: int) -> dict[Row, int]:
    """What changed after a version, netted."""
    rows = consolidate(changes(engine, snapshot.location, since, snapshot.version)).toArrow()
    return {key[:-1]: key[-1] for key in counted(rows)}


def delta_rs_contents(location: Location) -> Counter[Row]:
    """The rows that the deltalake package reads."""
    return counted(DeltaTable(location.uri).to_pyarrow_table())


def duckdb_contents(location: Location) -> Counter[Row]:
    """The rows that DuckDB's delta reader reads."""
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{_extension()}'")
        return counted(connection.execute("SELECT * FROM delta_scan(?)", [location.uri]).to_arrow_table())


@cache
def _extension() -> str:
    folder = Path(duckdb_extension_delta.__file__).parent
    return str(next(folder.rglob("*.duckdb_extension")))


def counted(table: pa.Table) -> Counter[Row]:
    """A table as a multiset of rows."""
    return Counter(tuple(plain(value) for value in row.values()) for row in table.to_pylist())


def plain(value: object) -> Any:
    """A value that can be hashed and compared, whoever read it."""
    match value:
        case dict():
            return tuple(plain(inner) for inner in value.values())
        case list():
            parts = [plain(inner) for inner in value]
            is_map = bool(value) and all(isinstance(inner, tuple) for inner in value)
            return ("map", *sorted(parts, key=repr)) if is_map else tuple(parts)
        case tuple():
            return tuple(plain(inner) for inner in value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value


def entries(location: Location, version: int) -> list[dict[str, Any]]:
    """The lines of a commit."""
    text = Path(location.uri, commit_path(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def named(location: Location, version: int, kind: str) -> list[str]:
    """Paths of the files that a commit adds or removes."""
    return [entry[kind]["path"] for entry in entries(location, version) if kind in entry]


def files_below(location: Location) -> set[str]:
    """Every file of the table but its log."""
    return {file.path for file in location.walk() if not file.path.startswith("_delta_log/")}
