"""Rows of a table with some key values, looked up on the driver.

Arrow looks through some million rows before Spark has planned, compiled and begun a scan of them. So where some
thousand rows of a table are wanted, they are read here: the key column of every file that may have them, and the other
columns only of files that do. Files that are looked through again get an index (``indexes.py``), and are then searched
instead. What is found travels with the plan.

Only what needs no help from the log is read here, and only types that are the same to Spark, Arrow and Parquet.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import DateType, DecimalType, IntegralType, StringType, StructField, StructType

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine.arrow import for_spark
from trickle.lake.bases import unpacked
from trickle.lake.datafile import DataFile
from trickle.lake.few import are_many, are_plain, opened, read_columns, with_places
from trickle.lake.indexes import WORKERS, Indexes, Place, is_ordered, table_name
from trickle.lake.local import are_comparable, net
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot

MOST_READ = 20_000_000
"""Rows of files without an index that are looked through."""
MOST_FOUND = 2_000_000
MOST_BYTES = 256 << 20
"""Rows that are found, and their size; more are left to Spark, which would be handed them with the plan."""
MOST_REMEMBERED = 512 << 20
"""Bytes of rows that were found, which stay until the refresh ends."""

Choose = Callable[[Sequence[DataFile]], Sequence[DataFile]]
_Known = tuple[str, str, str, tuple[str, ...], str]

_logger = logging.getLogger(__name__)
_AT_ONCE = 4 * WORKERS
"""Files that are searched before what was found is counted."""
_pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="lookup")


@dataclass(frozen=True)
class Wanted:
    """Values of a key column. NULL is one of them only where it equals itself."""

    values: pa.Array
    token: str
    """The same for the same values."""

    @staticmethod
    def of(keys: pa.ChunkedArray, key: StructField, *, nulls: bool) -> Wanted | None:
        """What to look for in a column; None when its type or theirs is not compared here as Spark does."""
        if not is_compared(keys.type, key):
            return None
        unique = pc.unique(keys)
        unique = unique if nulls else pc.drop_null(unique)
        try:
            values = unique.cast(type_of(key))
        except pa.ArrowInvalid:  # One of them lies outside of the column's type.
            return None
        ordered = values.take(pc.sort_indices(values))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("key", ordered.type)])) as stream:
            stream.write_batch(pa.record_batch([ordered], names=["key"]))
        return Wanted(ordered, hashlib.sha256(sink.getvalue()).hexdigest())


def type_of(key: StructField) -> pa.DataType:
    """The Arrow type in which a column is read."""
    return _nothing(StructType([StructField(key.name, key.dataType)])).schema[0].type


def is_compared(kind: pa.DataType, key: StructField) -> bool:
    """Whether values of a type are compared here with those of a column as Spark does."""
    match key.dataType:
        case IntegralType():
            return bool(pa.types.is_integer(kind))
        case DateType():
            return bool(pa.types.is_date(kind))
        case DecimalType():
            return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))
        case StringType():
            return bool(pa.types.is_string(kind)) and key.dataType == StringType()
        case _:
            return False


@dataclass
class Lookups:
    """Lookups of one refresh. Old and new version of a table share most files: each is looked through once."""

    indexes: Indexes | None = None
    files: int = 0
    rows: int = 0
    """Rows that were looked at: all of a file, or those that its index points to."""
    rows_indexed: int = 0
    _found: dict[_Known, pa.Table] = field(default_factory=dict)
    _new: set[str] = field(default_factory=set)

    def find(
        self,
        snapshot: Snapshot,
        schema: StructType,
        key: StructField,
        wanted: Wanted,
        *,
        choose: Choose = tuple,
        located: bool = False,
    ) -> tuple[pa.Table, StructType] | None:
        """The rows whose key is wanted, with FILE and ROW when ``located``; None when that is too much for here.

        ``choose`` says which files may have them.
        """
        shape = with_places(schema)
        if not len(wanted.values):
            rows = _nothing(shape)
            return (rows, shape) if located else (rows.select(schema.names), StructType(shape.fields[:-2]))
        if located:
            rows = self._in_files(snapshot.location, choose(snapshot.files), schema, key, wanted)
            return None if rows is None else (rows, shape)
        rows = self._by_base(snapshot, schema, key, wanted, choose)
        if rows is None:
            rows = self._in_files(snapshot.location, choose(snapshot.files), schema, key, wanted)
        return None if rows is None else (rows.select(schema.names), StructType(shape.fields[:-2]))

    def _by_base(
        self, snapshot: Snapshot, schema: StructType, key: StructField, wanted: Wanted, choose: Choose
    ) -> pa.Table | None:
        """The rows found by the indexes of another version, and what changed between the two."""
        name = table_name(snapshot.location, key)
        if self.indexes is None or name in self._new or not is_ordered(key) or not are_plain(snapshot.files, schema):
            return None
        schema = schema if key.name in schema.names else StructType([*schema.fields, key])
        # Rows that went have to be known again among those that were there.
        if not are_comparable(_nothing(schema).schema):
            return None
        near = self.indexes.bases.near(name, snapshot, schema.names)
        if near is None:
            self._new.add(name)
            return None
        self.indexes.touch(name)
        files = choose(near.base.files)
        # Keys that are all over the table will be so again. Where they are in some files, each has its own turn.
        scattered = 2 * len(files) >= len(near.base.files)
        try:
            found = self._in_files(snapshot.location, files, schema, key, wanted, at_once=scattered)
        except FileNotFoundError:  # The base is older than the files that were kept.
            self.indexes.bases.forget(name)
            return None
        if found is None or near.since is None:
            return found
        self.rows += near.since.num_rows
        since = near.since.filter(pc.is_in(near.since.column(key.name), wanted.values))
        rows = _with_changes(found.select(schema.names), unpacked(since, found.schema))
        if rows is None:
            _logger.warning("a base of %s does not fit version %s", snapshot.location.uri, snapshot.version)
            self.indexes.bases.forget(name)
        return None if rows is None or rows.num_rows > MOST_FOUND or rows.nbytes > MOST_BYTES else rows

    def _in_files(
        self,
        location: Location,
        files: Sequence[DataFile],
        schema: StructType,
        key: StructField,
        wanted: Wanted,
        *,
        at_once: bool = False,
    ) -> pa.Table | None:
        """The rows of files, with their places; ``at_once`` says not to wait with indexes for lookups to come."""
        if not are_plain(files, schema):
            return None
        if sum(rows.nbytes for rows in self._found.values()) > MOST_REMEMBERED:
            self._found.clear()
        indexed = self._indexed(location, files, schema, key, at_once)
        if are_many([file for file in files if file.path not in indexed], MOST_READ):
            return None
        parts: list[pa.Table] = []
        count = size = 0
        for rows in self._of_files(location, files, schema, key, wanted, indexed):
            count, size = count + rows.num_rows, size + rows.nbytes
            if count > MOST_FOUND or size > MOST_BYTES:
                return None
            parts.append(rows)
        return pa.concat_tables(parts) if parts else _nothing(with_places(schema))

    def _of_files(
        self,
        location: Location,
        files: Sequence[DataFile],
        schema: StructType,
        key: StructField,
        wanted: Wanted,
        indexed: Mapping[str, Place],
    ) -> Iterator[pa.Table]:
        """The rows of each file, those of some files at a time."""

        def look(file: DataFile) -> tuple[pa.Table, int]:
            place = indexed.get(file.path)
            found = None if place is None or self.indexes is None else self.indexes.find(place, schema, wanted.values)
            if found is not None:
                return _placed(*found, file.path), len(found[1])
            return _matching(location, file.path, schema, key, wanted), file.rows or 0

        def known_as(file: DataFile) -> _Known:
            return location.uri, file.path, key.name, tuple(schema.names), wanted.token

        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            todo = [file for file in some if known_as(file) not in self._found]
            for file, (rows, count) in zip(todo, _pool.map(look, todo), strict=True):
                self._found[known_as(file)] = rows
                self.files, self.rows = self.files + 1, self.rows + count
            yield from (self._found[known_as(file)] for file in some)

    def _indexed(
        self, location: Location, files: Sequence[DataFile], schema: StructType, key: StructField, at_once: bool
    ) -> dict[str, Place]:
        """The files that are searched by an index. Those that earlier refreshes looked through get one now."""
        if self.indexes is None:
            return {}
        known = [place for file in files if (place := Place(location, file, key)).is_indexable]
        if at_once:
            for place in known:
                self.indexes.touch(place.name)
        else:
            known = [place for place in known if self._is_known(self.indexes, place)]
        missing = {place.file.path: self.indexes.missing_bytes(place, schema) for place in known}
        to_make = [place for place in known if missing[place.file.path]]
        if to_make and self.indexes.make_room(sum(missing.values())):
            self.indexes.make(to_make, schema)
            self.rows_indexed += sum(place.file.rows or 0 for place in to_make)
        elif to_make:
            known = [place for place in known if not missing[place.file.path]]
        return {place.file.path: place for place in known}

    def _is_known(self, indexes: Indexes, place: Place) -> bool:
        if place.name in self._new:
            return False
        known = indexes.expect(place)
        if not known:
            self._new.add(place.name)
        return known


def _matching(location: Location, path: str, schema: StructType, key: StructField, wanted: Wanted) -> pa.Table:
    """The rows of a file whose key is wanted, with their places."""
    with opened(location, path) as file:
        groups = _groups_with(file.metadata, key, wanted.values)
        if not groups:
            return _nothing(with_places(schema))
        keys = read_columns(file, StructType([StructField(key.name, key.dataType)]), groups=groups).column(0)
        found = pc.indices_nonzero(pc.is_in(keys, wanted.values)).cast(pa.int64())
        if not len(found):
            return _nothing(with_places(schema))
        chosen, positions, numbers = _in_groups(file.metadata, groups, found)
        rows = read_columns(file, schema, groups=chosen).take(positions)
    return _placed(rows, numbers, path)


def _groups_with(metadata: pq.FileMetaData, key: StructField, values: pa.Array) -> list[int]:
    """The row groups that may have one of the sorted values in a column, by what the file says of them."""
    everything = list(range(metadata.num_row_groups))
    place = next((n for n in range(metadata.num_columns) if metadata.schema.column(n).path == key.name), None)
    if place is None or values.null_count or not isinstance(key.dataType, IntegralType | DateType):
        return everything
    known = [metadata.row_group(group).column(place).statistics for group in everything]
    if any(one is None or not one.has_min_max for one in known):
        # A group of NULLs has no least value; to tell it from one of which nothing is known is not worth it.
        return everything
    # As numbers: Python has no dates beyond its years.
    numbers = values.cast(pa.int32() if isinstance(key.dataType, DateType) else values.type).cast(pa.int64())
    low = pc.search_sorted(numbers, pa.array([one.min_raw for one in known], pa.int64()), side="left")
    high = pc.search_sorted(numbers, pa.array([one.max_raw for one in known], pa.int64()), side="right")
    return [group for group, any_there in enumerate(pc.greater(high, low).to_pylist()) if any_there]


def _in_groups(
    metadata: pq.FileMetaData, groups: Sequence[int], found: pa.Array
) -> tuple[list[int], pa.Array, pa.Array]:
    """Of positions in the rows of some groups: the groups that have them, the positions there, and in the file."""
    begins = list(accumulate((metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)), initial=0))
    chosen: list[int] = []
    positions, numbers = [], []
    before = before_chosen = 0
    for group in groups:
        rows = begins[group + 1] - begins[group]
        here = found.filter(pc.and_(pc.greater_equal(found, before), pc.less(found, before + rows)))
        if len(here):
            chosen.append(group)
            positions.append(pc.add(here, before_chosen - before))
            numbers.append(pc.add(here, begins[group] - before))
            before_chosen += rows
        before += rows
    return chosen, pa.concat_arrays(positions), pa.concat_arrays(numbers)


def _with_changes(rows: pa.Table, since: pa.Table) -> pa.Table | None:
    """Rows with what came and went since; None when something went that was not there."""
    if not since.num_rows:
        return rows
    weights = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    result = net(pa.concat_tables([rows.append_column(WEIGHT, weights), since.select([*rows.column_names, WEIGHT])]))
    fits = not pc.any(pc.less(result.column(WEIGHT), 0)).as_py()
    return result.drop_columns([WEIGHT]) if fits else None


def _placed(rows: pa.Table, numbers: pa.Array, path: str) -> pa.Table:
    rows = rows.append_column(FILE, pa.repeat(pa.scalar(path, pa.string()), rows.num_rows))
    return rows.append_column(ROW, pa.chunked_array([numbers]))


def _nothing(schema: StructType) -> pa.Table:
    return for_spark(pa.table({name: [] for name in schema.names}), schema)
