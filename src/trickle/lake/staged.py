"""A table whose next version is prepared and not committed: its contents, and its change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine
from trickle.engine.arrow import for_spark
from trickle.lake.changerows import ChangeRows
from trickle.lake.changes import consolidate
from trickle.lake.few import MOST_ROWS, rows_at_hand
from trickle.lake.local import net
from trickle.lake.prepared import Prepared
from trickle.lake.scan import pick, read_files
from trickle.lake.snapshot import Snapshot


def next_snapshot(snapshot: Snapshot, prepared: Prepared) -> Snapshot:
    """A table as it will be when what was prepared is committed."""
    if prepared.is_empty:
        return snapshot
    gone = {file.path for file in prepared.removes}
    files = tuple(file for file in snapshot.files if file.path not in gone)
    return replace(
        snapshot,
        version=snapshot.version + 1,
        schema=prepared.schema or snapshot.schema,
        files=files + prepared.adds,
    )


def staged_locally(engine: Engine, snapshot: Snapshot, prepared: Prepared, columns: Sequence[str]) -> pa.Table | None:
    """The change of a table by what was prepared, rows of weight +1 or -1 on the driver; None when it is not small."""
    if prepared.changes is None:
        return _written_anew(snapshot, prepared, columns)
    rows = ChangeRows(engine, snapshot.location, prepared.changes)
    if not rows.is_local:
        return None
    schema = pick(prepared.schema or snapshot.schema, columns)
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return net(for_spark(rows.table([*schema.names, WEIGHT]), StructType([*fields, StructField(WEIGHT, LongType())])))


def _written_anew(snapshot: Snapshot, prepared: Prepared, columns: Sequence[str]) -> pa.Table | None:
    """The same where whole files come and go, and are small."""
    schema = pick(prepared.schema or snapshot.schema, columns)
    parts = []
    for files, weight in ((prepared.adds, 1), (prepared.removes, -1)):
        if files:
            found = rows_at_hand(snapshot.location, files, schema, located=False, most=MOST_ROWS)
            if found is None:
                return None
            weights = pa.array([weight] * found[0].num_rows, pa.int64())
            parts.append(found[0].append_column(WEIGHT, weights))
    return net(pa.concat_tables(parts)) if parts else None


def staged_change(engine: Engine, snapshot: Snapshot, prepared: Prepared, columns: Sequence[str]) -> DataFrame:
    """The change of a table by what was prepared, as weighted rows."""
    schema = pick(prepared.schema or snapshot.schema, columns)
    if prepared.changes is not None:
        return ChangeRows(engine, snapshot.location, prepared.changes).frame(schema)
    parts = [
        read_files(engine, snapshot.location, schema, files).withColumn(WEIGHT, F.lit(weight).cast("bigint"))
        for files, weight in ((prepared.adds, 1), (prepared.removes, -1))
        if files
    ]
    return parts[0] if len(parts) == 1 else consolidate(parts[0].union(parts[1]))
