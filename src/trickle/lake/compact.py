"""Joining small files into larger ones: the same rows, fewer files, no change for any reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import functions as F

from trickle.algebra.weights import FILE, ROW
from trickle.engine import Engine
from trickle.lake.datafile import DataFile
from trickle.lake.prepared import UNCHANGED, Prepared, staging
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import GROUP, stage

TARGET_BYTES = 128 << 20
MIN_FILES = 2


def compact(
    engine: Engine, snapshot: Snapshot, target_bytes: int = TARGET_BYTES, min_files: int = MIN_FILES
) -> Prepared:
    """Join files that are much smaller than the target, at least ``min_files`` at a time."""
    bins = list(_bins(snapshot, target_bytes, max(2, min_files)))
    if not bins:
        return Prepared(snapshot.location, snapshot.version)
    chosen = tuple(file for files in bins for file in files)
    numbers = pa.table(
        {
            FILE: pa.array([file.path for file in chosen], pa.string()),
            GROUP: pa.array([number for number, files in enumerate(bins) for _ in files], pa.int32()),
        }
    )
    with staging(snapshot.location) as stages:
        rows = scan(engine, snapshot, files=chosen, located=True).drop(ROW)
        rows = rows.join(F.broadcast(engine.from_arrow(numbers)), FILE).drop(FILE)
        one = len(bins) == 1
        staged = stage(rows if one else rows.repartition(len(bins), GROUP), snapshot, small=one, grouped=True)
        stages.append(staged.stage_id)
        return Prepared(
            location=snapshot.location,
            read_version=snapshot.version,
            adds=staged.files,
            removes=chosen,
            info={"kind": "compact", **UNCHANGED},
            stage_ids=tuple(stages),
            data_change=False,
        )


def _bins(snapshot: Snapshot, target_bytes: int, min_files: int) -> Iterator[Sequence[DataFile]]:
    """Small files that go into one, never across partitions."""
    partitions: dict[tuple[str | None, ...], list[DataFile]] = {}
    for file in snapshot.files:
        # Deletion vectors can be read and not removed: such files stay as they are.
        if file.size < target_bytes * 3 // 4 and file.deletion_vector is None:
            partitions.setdefault(tuple(file.partition.get(name) for name in snapshot.partition_by), []).append(file)
    for files in partitions.values():
        yield from (found for found in _packed(_by_range(files, snapshot), target_bytes) if len(found) >= min_files)


def _by_range(files: Sequence[DataFile], snapshot: Snapshot) -> list[DataFile]:
    """Neighbours in the first column that has statistics come together, so that ranges stay narrow."""
    for name in snapshot.schema.names:
        lows = [file.minimum.get(name) for file in files]
        if all(isinstance(low, str) for low in lows):
            return sorted(files, key=lambda file: str(file.minimum[name]))
        if all(isinstance(low, int) for low in lows):
            return sorted(files, key=lambda file: int(str(file.minimum[name])))
    return list(files)


def _packed(files: Sequence[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    packed: list[DataFile] = []
    size = 0
    for file in files:
        if packed and size + file.size > target_bytes:
            yield packed
            packed, size = [], 0
        packed.append(file)
        size += file.size
    if packed:
        yield packed
