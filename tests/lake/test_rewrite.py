"""Replacing rows by replacing the files that hold them, and only those."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.lake.tables import (
    NUMBERS,
    Row,
    clustered,
    committed,
    contents,
    delta_rs_contents,
    entries,
    files_below,
    filled,
    frame,
    named,
    net_changes,
    numbers_table,
    shape,
)
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.errors import CorruptTable, InternalError, InvalidData, NegativeMultiplicity
from trickle.lake import changerows, rewrite
from trickle.lake.changes import changes
from trickle.lake.few import Few
from trickle.lake.rewrite import append, overwrite, replace_rows
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import Target


def updated(engine: Engine, table: Snapshot, where: str, **values: str) -> DataFrame:
    """The change rows of an UPDATE: every row twice, before and after."""
    old = scan(engine, table, located=True).where(where)
    new = old.withColumns({name: F.expr(text) for name, text in values.items()})
    return old.withColumn(WEIGHT, F.lit(-1)).unionByName(new.withColumn(WEIGHT, F.lit(1)))


def deleted(engine: Engine, table: Snapshot, where: str) -> DataFrame:
    return scan(engine, table, located=True).where(where).withColumn(WEIGHT, F.lit(-1))


def inserted(engine: Engine, table: Snapshot, rows: list[Row]) -> DataFrame:
    nowhere = {FILE: F.lit(None).cast("string"), ROW: F.lit(None).cast("long"), WEIGHT: F.lit(1)}
    return frame(engine, table.schema, rows).withColumns(nowhere)


def test_append_adds_files_and_the_files_are_the_change(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    prepared = append(engine, table, frame(engine, NUMBERS, [(2,), (2,)]))
    newer = committed(prepared)
    assert (prepared.inserted, prepared.deleted, prepared.removes) == (2, 0, ())
    assert contents(engine, newer) == {(1,): 1, (2,): 2}
    assert net_changes(engine, newer, table.version) == {(2,): 2}
    note = entries(table.location, newer.version)[0]["commitInfo"]["trickle"]
    assert (note["kind"], note["inserted"], "changes" in note) == ("append", 2, False)


def test_append_takes_arrow_tables_by_the_types_of_the_table(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, shape("id long, at timestamp_ntz"), [])
    given = pa.table({"AT": pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")), "id": pa.array([1], pa.int8())})
    assert contents(engine, committed(append(engine, table, given))) == {(1, datetime(2024, 1, 1)): 1}


def test_append_to_a_target_needs_a_version(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path)
    target = Target.of(table)
    with pytest.raises(InternalError):
        append(engine, target, frame(engine, NUMBERS, [(1,)]))
    assert committed(append(engine, target, frame(engine, NUMBERS, [(1,)]), read_version=0)).version == 1
    assert append(engine, target, frame(engine, NUMBERS, []), read_version=1).is_empty


@pytest.mark.portable
def test_an_update_rewrites_the_touched_files_each_into_one(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=6, rows_each=10)
    prepared = replace_rows(engine, table, updated(engine, table, "k IN (3, 7, 42)", v="'new'"))
    newer = committed(prepared)
    assert (prepared.inserted, prepared.deleted) == (3, 3)
    assert sorted(named(table.location, newer.version, "remove")) == [table.files[0].path, table.files[4].path]
    ranges = [(file.minimum["k"], file.maximum["k"], file.rows) for file in prepared.adds]
    assert sorted(ranges) == [(0, 9, 10), (40, 49, 10)], "rows stay with their neighbours"
    rows = contents(engine, newer)
    assert rows == delta_rs_contents(table.location)
    assert rows.total() == 60
    assert {row for row in rows if row[1] == "new"} == {(3, "new"), (7, "new"), (42, "new")}
    assert net_changes(engine, newer, table.version) == {
        **{(k, f"v{k}"): -1 for k in (3, 7, 42)},
        **{(k, "new"): 1 for k in (3, 7, 42)},
    }


def test_a_delete_of_whole_files_reads_and_writes_none(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=3, rows_each=10)
    prepared = replace_rows(engine, table, deleted(engine, table, "k < 20"))
    assert (prepared.adds, len(prepared.removes), prepared.deleted) == ((), 2, 20)
    newer = committed(prepared)
    assert sorted(k for k, _ in contents(engine, newer)) == list(range(20, 30))
    assert net_changes(engine, newer, table.version) == {(k, f"v{k}"): -1 for k in range(20)}


def test_change_rows_without_deletion_are_new_files_and_need_no_change_file(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    prepared = replace_rows(engine, table, inserted(engine, table, [(5,), (5,)]).withColumn(WEIGHT, F.lit(2)))
    assert (prepared.inserted, prepared.removes, "changes" in prepared.info) == (4, (), False)
    newer = committed(prepared)
    assert contents(engine, newer) == {(1,): 1, (5,): 4}
    assert not any(path.startswith("_trickle_changes") for path in files_below(table.location))
    nothing = replace_rows(engine, newer, inserted(engine, newer, []))
    assert nothing.is_empty
    assert len(files_below(table.location)) == 2


def test_what_computes_the_change_runs_once_so_table_and_change_agree(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=2, rows_each=5)
    newer = committed(replace_rows(engine, table, updated(engine, table, "k > 2", v="uuid()")))
    after = {row: 1 for row in contents(engine, newer) if row[0] > 2}
    found = changes(engine, table.location, table.version, newer.version).where(f"{WEIGHT} > 0")
    assert {(row.k, row.v): 1 for row in found.collect()} == after


def test_an_update_may_move_rows_between_partitions(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long, p string")
    table = filled(engine, tmp_path, schema, [(1, "a"), (2, "a"), (3, "b"), (4, None)], ["p"])
    newer = committed(replace_rows(engine, table, updated(engine, table, "id IN (2, 4)", p="'b'")))
    assert contents(engine, newer) == delta_rs_contents(table.location)
    assert contents(engine, newer) == {(1, "a"): 1, (2, "b"): 1, (3, "b"): 1, (4, "b"): 1}
    untouched = next(file for file in table.files if file.partition["p"] == "b")
    assert untouched in newer.files


def test_a_refused_change_leaves_no_files(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long NOT NULL, v string")
    table = filled(engine, tmp_path, schema, [(1, "a"), (2, "b")])
    before = files_below(table.location)
    with pytest.raises(InvalidData, match="'id' is NOT NULL"):
        replace_rows(engine, table, updated(engine, table, "id = 1", id="NULL"))
    twice = deleted(engine, table, "id = 1").unionAll(deleted(engine, table, "id = 1"))
    with pytest.raises(NegativeMultiplicity, match="twice"):
        replace_rows(engine, table, twice)
    elsewhere = deleted(engine, table, "id = 1").withColumn(FILE, F.lit("unknown.parquet"))
    with pytest.raises(CorruptTable, match="not in version"):
        replace_rows(engine, table, elsewhere)
    assert files_below(table.location) == before


@pytest.mark.parametrize("one_task, shuffled", [(0, 1 << 30), (0, 0)])
def test_large_rewrites_give_the_same_rows(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_task: int, shuffled: int
) -> None:
    monkeypatch.setattr(rewrite, "_on_driver", lambda *_: False)
    monkeypatch.setattr(rewrite, "ONE_TASK_BYTES", one_task)
    monkeypatch.setattr(rewrite, "SHUFFLE_BYTES", shuffled)
    monkeypatch.setattr(rewrite, "_SPELLED_OUT", 0)
    table = clustered(engine, tmp_path, files=4, rows_each=5)
    newer = committed(replace_rows(engine, table, updated(engine, table, "k % 5 = 1 AND k < 15", v="'new'")))
    expected = {(k, "new" if k % 5 == 1 and k < 15 else f"v{k}"): 1 for k in range(20)}
    assert contents(engine, newer) == expected
    assert table.files[3] in newer.files


def test_new_rows_at_hand_come_into_files_that_are_not_too_long(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows there are: of those that go in files that are written anew, one file is held at a time."""
    monkeypatch.setattr(changerows, "LOCAL_ROWS", 0)
    monkeypatch.setattr(rewrite, "FILE_ROWS", 3)
    table = clustered(engine, tmp_path, files=4, rows_each=5)
    come = inserted(engine, table, [(k, "new") for k in range(100, 107)])
    change = updated(engine, table, "k IN (1, 11)", v="'x'").unionByName(come)
    with engine.count_jobs() as counted:
        prepared = replace_rows(engine, table, change, few=Few(engine))
    assert [file.rows for file in prepared.adds] == [5, 5, 3, 3, 1]
    assert (counted.jobs or 0) <= 1, "Spark computes the change; the driver does the rest"
    newer = committed(prepared)
    expected = {(k, "x" if k in (1, 11) else f"v{k}"): 1 for k in range(20)} | {(k, "new"): 1 for k in range(100, 107)}
    assert contents(engine, newer) == expected == delta_rs_contents(newer.location)


def test_a_rewrite_of_a_few_files_takes_few_jobs(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=8, rows_each=5)
    with engine.count_jobs() as counted:
        replace_rows(engine, table, updated(engine, table, "k IN (1, 11)", v="'x'")).discard()
    # Two writes, and a broadcast for each small relation in them.
    assert counted.jobs is not None
    assert counted.jobs <= 6


@pytest.mark.portable
def test_new_contents_with_the_difference_as_change(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long, v string")
    table = filled(engine, tmp_path, schema, [(1, "a"), (2, "b"), (2, "b"), (3, None)])
    prepared = overwrite(
        engine, table, frame(engine, schema, [(1, "a"), (2, "b"), (3, "c"), (4, None)]), difference=True
    )
    assert (prepared.inserted, prepared.deleted) == (2, 2)
    newer = committed(prepared)
    assert contents(engine, newer) == delta_rs_contents(table.location)
    assert net_changes(engine, newer, table.version) == {(2, "b"): -1, (3, None): -1, (3, "c"): 1, (4, None): 1}
    same = overwrite(engine, newer, scan(engine, newer), difference=True)
    assert same.is_empty
    assert files_below(table.location) == {
        *(file.path for file in (*table.files, *newer.files)),
        *(change["path"] for change in prepared.info["changes"]),
    }


def test_to_and_from_empty_contents_the_files_are_the_difference(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1, 2])
    emptied = committed(overwrite(engine, table, frame(engine, NUMBERS, []), difference=True))
    assert contents(engine, emptied) == {}
    assert net_changes(engine, emptied, table.version) == {(1,): -1, (2,): -1}
    refilled = committed(overwrite(engine, emptied, frame(engine, NUMBERS, [(3,)]), difference=True))
    assert net_changes(engine, refilled, table.version) == {(1,): -1, (2,): -1, (3,): 1}
    assert overwrite(engine, emptied, frame(engine, NUMBERS, []), difference=True).is_empty


def test_new_contents_may_have_a_new_schema(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1, 2])
    rows = engine.from_arrow(pa.table({"name": ["x"], "n": pa.array([1], pa.int32())}))
    newer = committed(overwrite(engine, table, rows, difference=False, schema=rows.schema))
    assert newer.schema.names == ["name", "n"]
    assert contents(engine, newer) == delta_rs_contents(table.location) == {("x", 1): 1}
    with pytest.raises(InternalError):
        overwrite(engine, newer, rows, difference=True, schema=rows.schema)
