"""Indexes of data files: some rows of a file, found by a key without reading the file.

Parquet is read by whole columns: thirty rows of half a million cost as much as all of them. So the third time that
rows of a file are looked up by a key, its columns are kept once more, in the order of the key, as Arrow has them in
memory, with as few bytes for a number as the largest one needs; at once where a table has a base (``bases.py``) and is
looked up all over. These files are mapped, not read, and a search takes as many steps as the key has halvings.

A data file never changes, so neither does its index. All of it is a cache: what is missing is made again, and what was
not used for long goes when room is needed. It may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DateType, IntegralType, StructField, StructType

from trickle.engine.arrow import for_spark
from trickle.lake.bases import Bases
from trickle.lake.datafile import DataFile
from trickle.lake.few import opened, read_columns
from trickle.lake.location import Location

LEAST_ROWS = 20_000
MOST_ROWS = 10_000_000
"""Rows of a file that has an index: fewer are as soon read, and of more a column would fill the driver's memory."""
SETTLED_SECONDS = 3600.0
"""What was used in this time is not removed for others' sake: they would push each other out at every refresh."""
FORGOTTEN_SECONDS = 7 * 86400.0
"""What was not used in this time is removed at the next occasion: its data file is gone, most likely."""
MOST_MAPPED = 8192
"""Columns that stay mapped."""

WORKERS = max(1, min(4, os.cpu_count() or 1))

_KEYS, _ROWS, _AGAIN = "keys", "rows", "again"
_FORMAT = "4"
"""Another one when files are written or read in another way: older indexes are not found then."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """A data file and the column by which its rows are looked up."""

    location: Location
    file: DataFile
    key: StructField

    @cached_property
    def name(self) -> str:
        """The folder of the index. The path of a data file is never used again; its size is there for those who do."""
        return _hashed(self.location.uri, self.file.path, str(self.file.size), _named(self.key))

    @property
    def is_indexable(self) -> bool:
        """Whether an index can be made, and would be worth it."""
        return is_ordered(self.key) and LEAST_ROWS <= (self.file.rows or 0) <= MOST_ROWS


def is_ordered(key: StructField) -> bool:
    """Whether keys have the order that Arrow sorts them in."""
    return isinstance(key.dataType, IntegralType | DateType)


def table_name(location: Location, key: StructField) -> str:
    """The folder of what is known of a table and a key."""
    return _hashed(location.uri, _named(key))


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()[:40]


@cache
def indexes_in(folder: str, most_bytes: int) -> Indexes:
    """The indexes of a folder: one object for the whole process, as it knows what is mapped."""
    return Indexes(Path(folder), most_bytes)


class Indexes:
    """A folder of indexes that holds so many bytes at the most."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.bases = Bases(folder)
        self._folder = folder
        self._most_bytes = most_bytes
        self._lock = threading.RLock()
        self._mapped: OrderedDict[Path, pa.Array] = OrderedDict()
        self._touched: dict[str, float] = {}
        self._bytes: int | None = None

    def expect(self, place: Place) -> bool:
        """Note that a refresh looks rows of a file up. True from the third on: others may rewrite the file before."""
        folder = self._folder / place.name
        try:
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                return False
            again = folder / _AGAIN
            if not again.exists():
                again.touch()
                return False
        except OSError as failure:
            _logger.warning("no index of %s: %s", place.file.path, failure)
            return False
        self.touch(place.name)
        return True

    def missing_bytes(self, place: Place, schema: StructType) -> int:
        """About how many bytes are to be written before rows with these columns can be found."""
        folder = self._folder / place.name
        files = [(folder / _KEYS, 8), (folder / _ROWS, 4), *_files_of(folder, schema)]
        with self._lock:
            missing = [(path, width) for path, width in files if path not in self._mapped]
        return (place.file.rows or 0) * sum(width for path, width in missing if not path.exists())

    def make_room(self, size: int) -> bool:
        """Whether so many bytes may be written; what was not used for long is removed for them."""
        if not size:
            return True
        with self._lock:
            if self._bytes is None or self._bytes + size > self._most_bytes:
                self._bytes = self._remove_old(size)
            if self._bytes + size > self._most_bytes:
                return False
        with suppress(OSError):
            return shutil.disk_usage(self._folder).free > 2 * size
        return False

    def make(self, places: Sequence[Place], schema: StructType) -> None:
        """Make what is missing to find rows with these columns, several files at a time."""
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            list(pool.map(lambda place: self.find(place, schema, pa.nulls(0, pa.int64())), places))

    def find(self, place: Place, schema: StructType, values: pa.Array) -> tuple[pa.Table, pa.Array] | None:
        """The rows whose key is among sorted values, and their numbers; None when no index can be made."""
        try:
            return self._find(place, schema, values)
        except (OSError, pa.ArrowInvalid) as failure:
            _logger.warning("no index of %s: %s", place.file.path, failure)
            self._remove(place.name)
            return None

    def _find(self, place: Place, schema: StructType, values: pa.Array) -> tuple[pa.Table, pa.Array]:
        keys, rows = self._order(place)
        positions = _positions(keys, values)
        found = [self._column(place, field, rows).take(positions).cast(_kind(field.dataType)) for field in schema]
        return pa.table(found, names=schema.names), rows.take(positions).cast(pa.int64())

    def _order(self, place: Place) -> tuple[pa.Array, pa.Array]:
        """The keys in order, NULL last, and the numbers of the rows in that order."""
        folder = self._folder / place.name
        keys, rows = self._map(folder / _KEYS), self._map(folder / _ROWS)
        if keys is None or rows is None or len(keys) != len(rows):
            unordered = self._read(place, place.key)
            order = pc.sort_indices(unordered)
            keys, rows = narrow(unordered.take(order)), narrow(order)
            self._write(folder / _ROWS, rows)
            self._write(folder / _KEYS, keys)
        return keys, rows

    def _column(self, place: Place, field: StructField, rows: pa.Array) -> pa.Array:
        path = self._folder / place.name / _column_file(field)
        found = self._map(path)
        if found is None or len(found) != len(rows):
            found = narrow(self._read(place, field).take(rows))
            self._write(path, found)
        return found

    def _read(self, place: Place, field: StructField) -> pa.Array:
        with opened(place.location, place.file.path) as file:
            return _whole(read_columns(file, StructType([StructField(field.name, field.dataType)])).column(0))

    def _map(self, path: Path) -> pa.Array | None:
        with self._lock:
            if path in self._mapped:
                self._mapped.move_to_end(path)
                return self._mapped[path]
        try:
            with pa.memory_map(str(path)) as source:
                found = _whole(pa.ipc.open_file(source).read_all().column(0))
        except FileNotFoundError:
            return None
        with self._lock:
            self._mapped[path] = found
            while len(self._mapped) > MOST_MAPPED:
                self._mapped.popitem(last=False)
        return found

    def _write(self, path: Path, values: pa.Array) -> None:
        """Written aside and renamed: other processes see all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{uuid.uuid4().hex}.part")
        try:
            with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("", values.type)])) as writer:
                writer.write_batch(pa.record_batch([values], names=[""]))
            size = aside.stat().st_size
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        with self._lock:
            self._mapped.pop(path, None)
            self._bytes = None if self._bytes is None else self._bytes + size

    def touch(self, name: str) -> None:
        """Say on disk that an index is in use, from time to time."""
        now = time.time()
        if now - self._touched.get(name, 0.0) > SETTLED_SECONDS / 4:
            with suppress(OSError):
                os.utime(self._folder / name)
                self._touched[name] = now

    def _remove_old(self, size: int) -> int:
        """Remove what is forgotten, and what was not used for long until there is room; the bytes that are left."""
        found = sorted(_sizes(self._folder))
        total = sum(each for _, _, each in found)
        for used, name, each in found:
            enough = FORGOTTEN_SECONDS if total + size <= self._most_bytes else SETTLED_SECONDS
            if time.time() - used < enough:
                break
            self._remove(name)
            total -= each
        return total

    def _remove(self, name: str) -> None:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        with self._lock:
            self._touched.pop(name, None)
            for path in [path for path in self._mapped if path.parent == folder]:
                del self._mapped[path]


def _sizes(folder: Path) -> Iterable[tuple[float, str, int]]:
    """When each index was used last, and its bytes."""
    with suppress(OSError), os.scandir(folder) as indexes:
        for index in indexes:
            with suppress(OSError), os.scandir(index) as files:
                yield index.stat().st_mtime, index.name, sum(file.stat().st_size for file in files)


def _positions(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Where sorted values lie among sorted keys, each as often as it is there.

    >>> _positions(pa.array([1, 2, 2, 5, None]), pa.array([2, 3, None])).to_pylist()
    [1, 2, 4]
    """
    known, nulls = keys.slice(0, len(keys) - keys.null_count), keys.slice(len(keys) - keys.null_count)
    tail = pa.arange(len(known), len(known) + (len(nulls) if values.null_count else 0))
    values = values.slice(0, len(values) - values.null_count)
    if not len(known) or not len(values):
        return tail
    begin = pc.search_sorted(values, known[0:1].cast(values.type), side="left")[0].as_py()
    end = pc.search_sorted(values, known[-1:].cast(values.type), side="right")[0].as_py()
    values = values.slice(begin, end - begin).cast(known.type)
    first = pc.search_sorted(known, values, side="left").cast(pa.int64())
    there = pc.equal(known.take(first), values)
    first, values = first.filter(there), values.filter(there)
    counts = pc.subtract(pc.search_sorted(known, values, side="right").cast(pa.int64()), first)
    return pa.concat_arrays([_repeated(first, counts), tail])


def _repeated(first: pa.Array, counts: pa.Array) -> pa.Array:
    """For each beginning and count, the numbers from it on."""
    if pc.max(counts).as_py() in (None, 1):
        return first
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts)])
    total = offsets[-1].as_py()
    of = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(total)))
    return pc.add(pc.subtract(first, offsets[:-1]).take(of), pa.arange(0, total))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    match column.chunks:
        case []:
            return pa.array([], column.type)
        case [chunk]:
            return chunk
        case chunks:
            return pa.concat_arrays(chunks)


def _named(field: StructField) -> str:
    return f"{field.name.lower()} {field.dataType.simpleString()}"


@cache
def _hash_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def _column_file(field: StructField) -> str:
    return "c" + _hash_of(_named(field))


def _files_of(folder: Path, schema: StructType) -> list[tuple[Path, int]]:
    """The files that columns are kept in, and about how many bytes a value takes there."""
    return [(folder / _column_file(field), _width(_kind(field.dataType))) for field in schema.fields]


@cache
def _kind(kind: DataType) -> pa.DataType:
    """The type in which values are found."""
    return for_spark(pa.table({"c": []}), StructType([StructField("c", kind)])).schema[0].type


def _width(kind: pa.DataType) -> int:
    if pa.types.is_decimal(kind):
        return 8
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 40


def narrow(values: pa.Array) -> pa.Array:
    """The same numbers in the narrowest type that has them all; other values as they are.

    >>> narrow(pa.array([1, None, 300])).type
    DataType(int16)
    """
    if pa.types.is_integer(values.type):
        kinds = {2**7: pa.int8(), 2**15: pa.int16(), 2**31: pa.int32()}
        largest = max((end if end >= 0 else -end - 1 for end in _ends(values)), default=0)
    elif pa.types.is_decimal128(values.type):
        scale = values.type.scale
        digits = {9: pa.decimal32, 18: pa.decimal64}
        kinds = {10**most: kind(most, scale) for most, kind in digits.items() if scale <= most}
        # Arrow casts some of those that are too large without an error, to others: they are compared here.
        largest = max((abs(int(end.scaleb(scale))) for end in _ends(values)), default=0)
    else:
        return values
    fitting = (kind for bound, kind in kinds.items() if largest < bound and kind.bit_width < values.type.bit_width)
    kind = next(fitting, None)
    return values if kind is None else values.cast(kind)


def _ends(values: pa.Array) -> list[Any]:
    """The least and the largest value."""
    return [end for end in pc.min_max(values).as_py().values() if end is not None]
