"""Which files may hold given rows, by the statistics in the log."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from trickle.lake.datafile import DataFile
from trickle.lake.footers import holds_range
from trickle.lake.skipping import overlapping
from trickle.lake.snapshot import Snapshot

_COLUMNS = 4
_SPLITS = 6
_Range = tuple[object, object]


def candidate_files(snapshot: Snapshot, rows: pa.Table, columns: StructType) -> tuple[DataFile, ...]:
    """The files that may hold at least one of the rows, judged by some of the columns."""
    usable = [f.name for f in columns.fields if holds_range(f.dataType) and rows.column(f.name).null_count == 0]
    usable = [name for name in usable if _range(rows.column(name)) is not None][:_COLUMNS]
    if not usable or rows.num_rows == 0:
        return snapshot.files
    ordered = rows.select(usable).take(pc.sort_indices(rows.column(usable[0])))
    found = {file.identity for file in _search(snapshot.files, ordered, snapshot.schema, _SPLITS)}
    return tuple(file for file in snapshot.files if file.identity in found)


def _search(files: Sequence[DataFile], rows: pa.Table, schema: StructType, splits: int) -> list[DataFile]:
    """Halve the ordered rows again and again: few keys far apart must not take in all that lies between them."""
    ranges = {name: _range(rows.column(name)) for name in rows.column_names}
    left = overlapping(files, {name: bounds for name, bounds in ranges.items() if bounds is not None}, schema)
    if splits == 0 or rows.num_rows == 1 or len(left) <= 1:
        return list(left)
    middle = rows.num_rows // 2
    return [
        *_search(left, rows.slice(0, middle), schema, splits - 1),
        *_search(left, rows.slice(middle), schema, splits - 1),
    ]


def _range(values: pa.ChunkedArray) -> _Range | None:
    bounds = pc.min_max(values)
    try:
        return bounds["min"].as_py(), bounds["max"].as_py()
    except (ValueError, OverflowError):
        # Python has no year 0 and none after 9999.
        return None
