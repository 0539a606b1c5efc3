"""Statistics of data files, taken from their Parquet footers: no data is read and no Spark job runs.

Minimum and maximum may be wider than the truth, never narrower: text is cut to 32 characters and timestamps to
milliseconds, with the maximum rounded up. Floating point has none (NaN), nor have nested columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from trickle.errors import CorruptTable
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location, StoredFile

INDEXED_COLUMNS = 32
"""Columns with minimum and maximum in the log, as Delta's own default."""

TEXT_LENGTH = 32

_RANGED = (
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_LAST_CHARACTER = "\U0010ffff"
_THREADS = 8


@dataclass(frozen=True)
class Described:
    """A file to describe: where it is and the partition values that its folder stands for."""

    stored: StoredFile
    partition: Mapping[str, str | None]


def describe(location: Location, files: Sequence[Described], schema: StructType) -> tuple[DataFile, ...]:
    """The data files with statistics of the columns of ``schema`` that the files hold."""

    def one(file: Described) -> DataFile:
        return describe_file(location, file, schema)

    if len(files) <= 2:
        return tuple(one(file) for file in files)
    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(one, files))


def describe_file(location: Location, file: Described, schema: StructType) -> DataFile:
    """One data file with its statistics."""
    metadata = _footer(location, file.stored.path)
    leaves = _top_level_leaves(metadata)
    minimum: dict[str, object] = {}
    maximum: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for position, field in enumerate(schema.fields):
        leaf = leaves.get(field.name)
        if leaf is None:
            continue
        statistics = list(_statistics(metadata, leaf))
        count = _null_count(statistics)
        if count is not None:
            nulls[field.name] = count
        bounds = _bounds(statistics, field) if position < INDEXED_COLUMNS else None
        if bounds is not None:
            minimum[field.name] = bounds[0]
            if bounds[1] is not None:
                maximum[field.name] = bounds[1]
    return DataFile(
        path=quote(file.stored.path, safe="/="),
        size=file.stored.size,
        partition=dict(file.partition),
        rows=metadata.num_rows,
        minimum=minimum,
        maximum=maximum,
        nulls=nulls,
    )


def _footer(location: Location, path: str) -> pq.FileMetaData:
    filesystem, root = location.filesystem()
    try:
        return pq.read_metadata(f"{root}/{path}" if root else path, filesystem=filesystem)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTable(f"data file {path!r} cannot be read", detail=str(error)) from None


def _top_level_leaves(metadata: pq.FileMetaData) -> dict[str, int]:
    """Positions of the primitive columns that are not inside a struct, array or map."""
    found: dict[str, int] = {}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.max_repetition_level == 0 and column.path == column.name:
            found[column.name] = index
    return found


def _statistics(metadata: pq.FileMetaData, leaf: int) -> Iterator[pq.Statistics | None]:
    for group in range(metadata.num_row_groups):
        column = metadata.row_group(group).column(leaf)
        yield column.statistics if column.is_stats_set else None


def _null_count(statistics: Sequence[pq.Statistics | None]) -> int | None:
    total = 0
    for one in statistics:
        if one is None or not one.has_null_count:
            return None
        total += one.null_count
    return total


def _bounds(statistics: Sequence[pq.Statistics | None], field: StructField) -> tuple[object, object | None] | None:
    if not isinstance(field.dataType, _RANGED):
        return None
    lows, highs = [], []
    for one in statistics:
        if one is None:
            return None
        if not one.has_min_max:
            if one.has_null_count and one.num_values == 0:
                continue
            return None
        try:
            lows.append(one.min)
            highs.append(one.max)
        except (ValueError, OverflowError):
            # Python has no year 0 and none after 9999.
            return None
    if not lows:
        return None
    return lower_bound(min(lows)), upper_bound(max(highs))


def lower_bound(value: object) -> object:
    """The value, or a little less, as the log spells it."""
    match value:
        case str():
            return value[:TEXT_LENGTH]
        case datetime():
            return _instant(_to_millisecond(value))
        case date():
            return value.isoformat()
        case _:
            return value


def upper_bound(value: object) -> object | None:
    """The value, or a little more, as the log spells it; None when there is nothing above it to write down.

    >>> upper_bound(datetime(2024, 5, 1, 12, 0, 0, 1))
    '2024-05-01T12:00:00.001'
    """
    match value:
        case str():
            if len(value) <= TEXT_LENGTH:
                return value
            return None if value[TEXT_LENGTH] == _LAST_CHARACTER else value[:TEXT_LENGTH] + _LAST_CHARACTER
        case datetime():
            below = _to_millisecond(value)
            try:
                return _instant(below if below == value else below + timedelta(milliseconds=1))
            except OverflowError:
                return None
        case date():
            return value.isoformat()
        case _:
            return value


def _to_millisecond(value: datetime) -> datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _instant(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if value.tzinfo is None else text + "Z"


def stats_json(file: DataFile) -> str:
    """The statistics as the log holds them. Never empty: an empty text spoils the statistics of all files."""
    parts = []
    if file.rows is not None:
        parts.append(f'"numRecords":{file.rows}')
    parts.append(f'"minValues":{_json_object(file.minimum)}')
    parts.append(f'"maxValues":{_json_object(file.maximum)}')
    parts.append(f'"nullCount":{_json_object(file.nulls)}')
    return "{" + ",".join(parts) + "}"


def _json_object(values: Mapping[str, object]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{_json_value(value)}" for name, value in values.items()) + "}"


def _json_value(value: object) -> str:
    # A decimal is a JSON number with all its digits, which json.dumps cannot write.
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


def parse_stats(text: str) -> tuple[int | None, dict[str, object], dict[str, object], dict[str, int]]:
    """Row count, minimum, maximum and null counts from the log's text: the inverse of ``stats_json``."""
    found = json.loads(text, parse_float=Decimal)
    return found.get("numRecords"), found["minValues"], found["maxValues"], found["nullCount"]


def holds_range(kind: DataType) -> bool:
    """Whether the log keeps minimum and maximum for columns of this type."""
    return isinstance(kind, _RANGED)
