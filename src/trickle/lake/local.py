"""Small changes, read on the driver: no Spark job, and their size is known before anything is planned.

Only what needs no help from the log is read here: exact change rows, and added or removed files without partition
values and deletion vectors. Everything else is left to Spark (``lake/changes.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.weights import WEIGHT
from trickle.engine.arrow import for_spark
from trickle.lake.changes import require_files, shared_schema
from trickle.lake.difference import Difference, between
from trickle.lake.few import read_few
from trickle.lake.location import Location
from trickle.lake.paths import is_absolute

MAX_ROWS = 1_000_000
MAX_BYTES = 256 << 20
"""Bytes of files that are read here; change rows are read column by column, so most of it is skipped."""


def local_changes(location: Location, old: int, new: int, columns: Sequence[str]) -> pa.Table | None:
    """The net change of the versions (old, new], rows of weight +1 or -1; None when it is not small or not plain."""
    found = between(location, old, new)
    if not _is_plain(found):
        return None
    schema = shared_schema(location, found.schemas, columns)
    require_files(location, found)
    parts = [_read(location, file.path, schema, weight) for file, weight in found.whole]
    parts += [_read(location, path, schema, None) for exact in found.exact for path in exact.paths]
    if not parts:
        plain = [StructField(field.name, field.dataType) for field in schema.fields]
        shape = StructType([*plain, StructField(WEIGHT, LongType())])
        return for_spark(pa.table({name: [] for name in shape.names}), shape)
    return net(pa.concat_tables(parts), len(parts) > 1)


def net(rows: pa.Table, mixed: bool = True) -> pa.Table:
    """Weighted rows without those that cancel, each of weight +1 or -1.

    Rows that cannot be compared on the driver stay as they are: that costs work later and is as right.
    """
    signs = pc.min_max(rows.column(WEIGHT)).as_py() if rows.num_rows else {"min": 1, "max": 1}
    columns = [name for name in rows.column_names if name != WEIGHT]
    if mixed and signs["min"] < 0 < signs["max"] and columns and are_comparable(rows.select(columns).schema):
        rows = summed(rows)
    return single(rows)


def summed(rows: pa.Table) -> pa.Table:
    """The net of weighted rows that are comparable: one row for each distinct row whose weights do not cancel."""
    columns = [name for name in rows.column_names if name != WEIGHT]
    found = rows.group_by(columns).aggregate([(WEIGHT, "sum")]).select([*columns, f"{WEIGHT}_sum"])
    return found.filter(pc.not_equal(found.column(f"{WEIGHT}_sum"), 0)).rename_columns([*columns, WEIGHT])


def single(rows: pa.Table) -> pa.Table:
    """Rows whose weights are all +1 or -1: a row of weight -3 is there three times."""
    is_one = pc.equal(pc.abs(rows.column(WEIGHT)), 1)
    if pc.all(is_one).as_py() is not False:
        return rows
    several = rows.filter(pc.invert(is_one))
    weights = several.column(WEIGHT).to_pylist()
    places = [place for place, weight in enumerate(weights) for _ in range(abs(weight))]
    signs = [1 if weights[place] > 0 else -1 for place in places]
    taken = several.take(pa.array(places, pa.int64()))
    place = rows.column_names.index(WEIGHT)
    single = taken.set_column(place, rows.schema.field(WEIGHT), pa.array(signs, pa.int64()))
    return pa.concat_tables([rows.filter(is_one), single])


def are_comparable(schema: pa.Schema) -> bool:
    """Whether Arrow compares values of all columns as Spark does."""
    return not any(pa.types.is_nested(t) or pa.types.is_floating(t) or pa.types.is_null(t) for t in schema.types)


def _is_plain(found: Difference) -> bool:
    if found.revised or found.feed:
        return False
    files = [file for file, _ in found.whole]
    if any(file.rows is None or file.partition or file.deletion_vector is not None for file in files):
        return False
    if any(is_absolute(file.path) for file in files):
        return False
    if any(weight not in (1, -1) for _, weight in found.whole):
        return False
    exact = [account.inserted is not None and account.deleted is not None for account in found.exact]
    rows = sum(file.rows or 0 for file in files)
    rows += sum((account.inserted or 0) + (account.deleted or 0) for account in found.exact)
    return all(exact) and rows <= MAX_ROWS and sum(file.size for file in files) <= MAX_BYTES


def _read(location: Location, path: str, schema: StructType, weight: int | None) -> pa.Table:
    if weight is None:
        return read_few(location, path, schema, (StructField(WEIGHT, LongType()),))
    table = read_few(location, path, schema)
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), table.num_rows))
