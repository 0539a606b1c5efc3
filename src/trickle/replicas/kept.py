"""Values that the WAL leaves out because they did not change, looked up in the replica.

PostgreSQL stores long values out of line, and an UPDATE that does not touch one does not write it again. Where the WAL
has keys of old rows and not whole rows, the value is nowhere but in the replica, in the row that the key identifies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.names import INTERNAL_PREFIX, quote
from trickle.engine import Engine, spark_errors
from trickle.engine.arrow import for_spark
from trickle.errors import NegativeMultiplicity
from trickle.lake.candidates import candidate_files
from trickle.lake.comparable import same_rows
from trickle.lake.scan import pick, scan
from trickle.lake.snapshot import Snapshot

_PLACE = INTERNAL_PREFIX + "place"
_KEY = INTERNAL_PREFIX + "key"


def with_kept(
    engine: Engine,
    snapshot: Snapshot,
    rows: pa.Table,
    key: Sequence[str],
    kept: pa.Table,
    names: Mapping[str, str],
) -> pa.Table:
    """Changes by key with what ``Changes.kept`` names filled in. ``names`` are those of the lake, by the source's."""
    columns = [names[column] for column in pc.unique(kept.column("column")).to_pylist()]
    found = _old_values(engine, snapshot, rows, key, pc.unique(kept.column("old")), columns)
    place_of = {place: number for number, place in enumerate(found.column(_PLACE).to_pylist())}
    fills: dict[str, dict[int, int]] = {column: {} for column in columns}
    for one in kept.to_pylist():
        if one["old"] not in place_of:
            raise NegativeMultiplicity(
                "a delta changes a row that the table does not hold", detail=f"table at {snapshot.location.uri}"
            )
        fills[names[one["column"]]][one["new"]] = place_of[one["old"]]
    for column, fill in fills.items():
        there = rows.column(column)
        both = pa.chunked_array([*there.chunks, *found.column(column).cast(there.type).chunks], there.type)
        chosen = pa.array([len(there) + fill[row] if row in fill else row for row in range(len(there))], pa.int64())
        rows = rows.set_column(rows.column_names.index(column), column, both.take(chosen))
    return rows


def _old_values(
    engine: Engine, snapshot: Snapshot, rows: pa.Table, key: Sequence[str], places: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """The values of these columns in the rows of the replica that the keys at these places identify."""
    keys = pick(snapshot.schema, key)
    wanted = rows.select(keys.names).take(places)
    files = candidate_files(snapshot, for_spark(wanted, keys), keys)
    fields = [StructField(f"{_KEY}{n}", field.dataType) for n, field in enumerate(keys.fields)]
    given = wanted.rename_columns([field.name for field in fields]).append_column(_PLACE, places)
    looked_up = engine.from_arrow(given, StructType([*fields, StructField(_PLACE, LongType())]))
    table = scan(engine, snapshot, columns=list(dict.fromkeys([*keys.names, *columns])), files=files)
    matches = same_rows(
        keys.fields,
        {name: table[quote(name)] for name in keys.names},
        {name: looked_up[f"{_KEY}{n}"] for n, name in enumerate(keys.names)},
    )
    with spark_errors():
        joined = table.join(F.broadcast(looked_up), matches)
        return joined.select(_PLACE, *(F.col(quote(column)) for column in columns)).toArrow()
