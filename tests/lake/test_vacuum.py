"""Vacuum removes what nobody needs, and never anything else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.lake.tables import (
    committed,
    delta,
    delta_rs_contents,
    files_below,
    net_changes,
    numbers_table,
    shape,
    write_numbers,
)
from trickle.engine import Engine
from trickle.errors import HistoryLost, InvalidOption
from trickle.lake.changes import changes
from trickle.lake.commit import TableCommit, commit
from trickle.lake.location import Location
from trickle.lake.merge import merge_rows
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.vacuum import vacuum


def replaced(table: Snapshot, *numbers: int) -> Snapshot:
    """The table with these numbers and no others."""
    file = write_numbers(table.location, numbers, f"data-{numbers[0]}/part.parquet")
    commit(TableCommit(table.location, table.version, adds=(file,), removes=table.files))
    return open_snapshot(table.location)


def age(table: Snapshot, hours: float, paths: Iterable[str] | None = None) -> None:
    """Make files look older."""
    moment = time.time() - hours * 3600
    for path in paths if paths is not None else [file.path for file in table.location.walk()]:
        os.utime(Path(table.location.uri, path), (moment, moment))


def test_files_of_dead_versions_go_and_those_of_kept_ones_stay(tmp_path: Path) -> None:
    v1 = numbers_table(tmp_path, [1], [2])
    v2 = replaced(v1, 20)
    v3 = replaced(v2, 30)
    kept = vacuum(v3.location, keep_versions=[v2.version], retention_hours=0, dry_run=True)
    assert set(kept) == {file.path for file in v1.files}
    assert files_below(v3.location) == {file.path for file in (*v1.files, *v2.files, *v3.files)}
    gone = vacuum(v3.location, keep_versions=[v2.version], retention_hours=0)
    assert set(gone) == {file.path for file in v1.files}
    assert files_below(v3.location) == {file.path for file in (*v2.files, *v3.files)}
    assert not (tmp_path / "data-0").exists(), "empty folders go too"
    assert delta_rs_contents(v3.location) == {(30,): 1}


def test_the_newest_version_is_kept_unasked_and_no_commit_is_made(tmp_path: Path) -> None:
    v1 = numbers_table(tmp_path, [1])
    v2 = replaced(v1, 2)
    vacuum(v2.location, keep_versions=[], retention_hours=0)
    assert files_below(v2.location) == {file.path for file in v2.files}
    assert open_snapshot(v2.location) == v2
    with pytest.raises(InvalidOption):
        vacuum(v2.location, keep_versions=[], retention_hours=-1)


def test_a_version_between_kept_ones_keeps_its_files(tmp_path: Path) -> None:
    v1 = numbers_table(tmp_path, [1])
    v2 = replaced(v1, 2)
    v3 = replaced(v2, 3)
    assert vacuum(v3.location, keep_versions=[v1.version, v3.version], retention_hours=0) == []
    assert files_below(v3.location) == {file.path for file in (*v1.files, *v2.files, *v3.files)}


def test_young_files_stay_whether_dead_or_unknown(tmp_path: Path) -> None:
    v1 = numbers_table(tmp_path, [1])
    stray = write_numbers(v1.location, [9], "data-stray/part.parquet")
    v2 = replaced(v1, 2)
    assert vacuum(v2.location, keep_versions=[], retention_hours=1) == []
    age(v2, 2, [stray.path, v1.files[0].path])
    # The first file was removed from the table a moment ago: somebody may be reading it.
    assert vacuum(v2.location, keep_versions=[], retention_hours=1) == [stray.path]
    age(v2, 2)
    assert vacuum(v2.location, keep_versions=[], retention_hours=1) == [v1.files[0].path]


def test_stages_of_commits_under_way_stay_however_old(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    for path in ("data-open/part.parquet", "data-dead/part.parquet"):
        write_numbers(table.location, [9], path)
    for path in ("_trickle_changes/open/part.parquet", "_trickle_changes/dead/part.parquet"):
        write_numbers(table.location, [9], path)
    age(table, 1000)
    gone = vacuum(table.location, keep_versions=[], retention_hours=1, protected_stages={"open"})
    assert sorted(gone) == ["_trickle_changes/dead/part.parquet", "data-dead/part.parquet"]


def test_files_of_others_stay(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    theirs = ["_change_data/c.parquet", "_index/i.parquet", ".hidden/h.parquet", "notes.txt"]
    for path in theirs:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(b"x")
    assert vacuum(table.location, keep_versions=[], retention_hours=0) == []
    assert set(theirs) < files_below(table.location)


def test_paths_that_the_log_quotes_are_kept(tmp_path: Path) -> None:
    table = numbers_table(tmp_path)
    file = write_numbers(table.location, [1], "data-a b/ü %20.parquet")
    commit(TableCommit(table.location, 0, adds=(file,)))
    assert vacuum(table.location, keep_versions=[], retention_hours=0) == []


def test_change_rows_stay_as_long_as_a_kept_version_lies_before_them(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long")
    v1 = numbers_table(tmp_path, [1, 2])
    v2 = committed(merge_rows(engine, v1, delta(engine, schema, [((1,), -1)])))
    v3 = committed(merge_rows(engine, v2, delta(engine, schema, [((2,), -1), ((3,), 1)])))
    vacuum(v3.location, keep_versions=[v1.version], retention_hours=0)
    assert net_changes(engine, v3, v1.version) == {(1,): -1, (2,): -1, (3,): 1}
    vacuum(v3.location, keep_versions=[v2.version], retention_hours=0)
    assert net_changes(engine, v3, v2.version) == {(2,): -1, (3,): 1}
    with pytest.raises(HistoryLost):
        changes(engine, v3.location, v1.version, v3.version).collect()


def test_a_log_that_does_not_reach_back_stops_the_vacuum(tmp_path: Path) -> None:
    v1 = numbers_table(tmp_path, [1])
    v2 = replaced(replaced(v1, 2), 3)
    (tmp_path / "_delta_log" / f"{v1.version:020}.json").unlink()
    with pytest.raises(HistoryLost):
        vacuum(v2.location, keep_versions=[v1.version], retention_hours=0)
    assert len(files_below(v2.location)) == 3


def test_tables_of_deltalake_are_vacuumed_too(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    write_deltalake(tmp_path, pa.table({"id": [2], "p": ["b c"]}), mode="overwrite")
    place = Location.of(tmp_path)
    assert len(vacuum(place, keep_versions=[], retention_hours=0)) == 1
    assert delta_rs_contents(place) == {(2, "b c"): 1}
