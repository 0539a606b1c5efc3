"""Small files joined into larger ones: the same rows, and no change for any reader."""

from __future__ import annotations

from pathlib import Path

from tests.lake.tables import (
    clustered,
    committed,
    contents,
    delta_rs_contents,
    entries,
    filled,
    frame,
    net_changes,
    shape,
)
from trickle.engine import Engine
from trickle.lake.changes import count_changes
from trickle.lake.compact import compact
from trickle.lake.rewrite import append


def test_compaction_changes_files_and_no_rows(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=12, rows_each=5)
    newer = committed(compact(engine, table))
    assert len(newer.files) == 1
    assert contents(engine, newer) == contents(engine, table) == delta_rs_contents(table.location)
    assert net_changes(engine, newer, table.version) == {}
    assert count_changes(table.location, table.version, newer.version).inserted == 0
    assert {
        entry[kind]["dataChange"]
        for entry in entries(table.location, newer.version)
        for kind in ("add", "remove")
        if kind in entry
    } == {False}
    assert compact(engine, newer).is_empty


def test_large_files_stay_and_neighbours_come_together(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=6, rows_each=5)
    table = committed(
        append(engine, table, engine.sql("SELECT id + 100 AS k, uuid() AS v FROM range(5000)").coalesce(1))
    )
    target = 2 * max(file.size for file in table.files[:6]) + 100
    newer = committed(compact(engine, table, target_bytes=target))
    large = next(file for file in table.files if file.rows == 5000)
    assert large in newer.files
    ranges = sorted((file.minimum["k"], file.maximum["k"]) for file in newer.files if file != large)
    assert ranges == [(0, 9), (10, 19), (20, 29)]
    assert contents(engine, newer) == contents(engine, table)
    assert compact(engine, table, target_bytes=target, min_files=3).is_empty


def test_partitions_are_compacted_each_for_itself(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long, p string")
    table = filled(engine, tmp_path, schema, [(1, "a"), (2, None)], ["p"])
    table = committed(append(engine, table, frame(engine, schema, [(3, "a"), (4, None), (5, "c")])))
    newer = committed(compact(engine, table))
    assert sorted((str(file.partition["p"]), file.rows) for file in newer.files) == [("None", 2), ("a", 2), ("c", 1)]
    assert contents(engine, newer) == delta_rs_contents(table.location)
    assert contents(engine, newer) == {(1, "a"): 1, (2, None): 1, (3, "a"): 1, (4, None): 1, (5, "c"): 1}
