"""One Delta commit, by itself: the data files are written beforehand, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.types import DecimalType, IntegerType, LongType, StructField, StructType

from bench.data import batch
from bench.figures import Line, timed
from bench.sizes import Sizes
from trickle import Trickle
from trickle.lake.commit import TableCommit, commit
from trickle.lake.create import create
from trickle.lake.datafile import DataFile

_SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("grp", IntegerType()),
        StructField("amount", DecimalType(12, 2)),
    ]
)


def run(t: Trickle, sizes: Sizes) -> Iterator[Line]:
    """Commits of one added file each, one after the other; checkpoints are written on the way."""
    location = t.warehouse.root.child("bench", "commits")
    create(location, _SCHEMA)
    samples = []
    for number in range(sizes.commits):
        path = f"part-{number}.parquet"
        target = Path(location.uri, path)
        pq.write_table(batch(number, 1, 1), target)
        added = DataFile(path, target.stat().st_size, rows=1)
        change = TableCommit(location, number, adds=(added,), info={"kind": "append"})
        took, _ = timed(commit, change)
        samples.append(took)
    yield Line("Delta commit of one file", tuple(samples), {"log_versions": sizes.commits})
