"""A commit lands on the version after the one it was computed from, or not at all."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add, inline_vector
from tests.lake.tables import NUMBERS, delta_rs_contents, entries, numbers_table, shape, write_file, write_numbers
from trickle.errors import ConcurrentModification, CorruptTable, InternalError, UnsupportedTable
from trickle.lake.commit import TableCommit, check_writable, commit, commit_once, is_committed
from trickle.lake.create import create
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.types import delta_schema


def numbers(snapshot: Snapshot) -> list[int]:
    return sorted(row[0] for row in delta_rs_contents(snapshot.location).elements())


def adding(snapshot: Snapshot, *ids: int, app: tuple[str, int] | None = None) -> TableCommit:
    name = f"data-{'-'.join(map(str, ids))}/part.parquet"
    file = write_numbers(snapshot.location, ids, name)
    return TableCommit(snapshot.location, snapshot.version, adds=(file,), info={"kind": "append"}, app=app)


def theirs(file: DataFile) -> AddAction:
    return AddAction(file.path, file.size, {}, 0, True, '{"numRecords":1}')


def test_files_come_and_go_in_one_version_with_a_note_and_a_transaction(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1, 2], [3])
    change = adding(table, 7, 8, app=("refresh", 5))
    version = commit(replace(change, removes=table.files[:1]))
    assert version == table.version + 1
    assert numbers(table) == [3, 7, 8]
    note, added, removed, transaction = entries(table.location, version)
    assert note["commitInfo"]["trickle"] == {"kind": "append", "commit": change.commit_id}
    assert added["add"]["path"] == "data-7-8/part.parquet"
    assert removed["remove"]["path"] == table.files[0].path
    assert transaction["txn"] == {"appId": "refresh", "version": 5}


def test_what_the_log_says_is_what_was_staged(tmp_path: Path) -> None:
    table = numbers_table(tmp_path)
    change = adding(table, 7, 8)
    commit(change)
    assert open_snapshot(table.location).files == change.adds


def test_a_commit_survives_the_catalog(tmp_path: Path) -> None:
    schema = shape("id long, d decimal(10;2), s string")
    file = DataFile("data-1/a%20b.parquet", 9, {"p": None}, 3, {"d": 1, "s": "ü"}, {"s": "z"}, {"id": 0})
    change = TableCommit(
        Location.of(tmp_path), 4, (file,), (replace(file, path="x"),), {"changes": []}, schema, ("app", 2), False
    )
    assert TableCommit.from_json(change.to_json()) == change
    plain = TableCommit(Location.of("s3://bucket/t", {"secret": "x"}), 0)
    assert "secret" not in plain.to_json()
    assert TableCommit.from_json(plain.to_json(), {"secret": "x"}) == plain


def test_a_commit_knows_the_stages_that_it_needs() -> None:
    change = TableCommit(
        Location.of("/t"),
        0,
        adds=(DataFile("data-one/part.parquet", 1), DataFile("other.parquet", 1)),
        info={"changes": [{"path": "_trickle_changes/two/part.parquet", "rows": 1}]},
    )
    assert change.stage_ids == {"one", "two"}


def test_of_two_commits_from_one_version_the_second_is_refused(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    first, second = adding(table, 2), adding(table, 3)
    commit(first)
    with pytest.raises(ConcurrentModification, match="first"):
        commit(second)
    assert numbers(table) == [1, 2]


def test_an_append_and_a_rewrite_from_one_version_conflict_either_way(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    rewrite = replace(adding(table, 10), removes=table.files)
    append = adding(table, 2)
    commit(append)
    with pytest.raises(ConcurrentModification):
        commit(rewrite)
    newer = open_snapshot(table.location)
    rewrite = replace(adding(newer, 11), removes=newer.files)
    commit(rewrite)
    with pytest.raises(ConcurrentModification):
        commit(adding(newer, 3))
    assert numbers(table) == [11]


def test_trap_default_retries_of_delta_rs_lose_a_conflict_and_ours_do_not(tmp_path: Path) -> None:
    table = numbers_table(tmp_path / "theirs", [1])
    file = write_numbers(table.location, [10], "new.parquet")
    old_handle = DeltaTable(table.location.uri)
    commit(adding(table, 2))
    gone = table.files[0]
    old_handle.create_write_transaction(
        [theirs(file), RemoveAction(gone.path, True, 0, size=gone.size, partition_values={})],
        mode="append",
        schema=old_handle.schema(),
    )
    assert numbers(table) == [2, 10], "delta-rs put a rewrite on top of a version that it had not seen"

    ours = numbers_table(tmp_path / "ours", [1])
    rewrite = replace(adding(ours, 10), removes=ours.files)
    commit(adding(ours, 2))
    with pytest.raises(ConcurrentModification):
        commit(rewrite)
    assert numbers(ours) == [1, 2]


def test_a_writer_that_comes_between_the_look_and_the_commit_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = numbers_table(tmp_path, [1], [2])
    slow = replace(adding(table, 10), removes=table.files[:1])
    fast = adding(table, 3)

    def look_while_another_commits(location: Location, handle: DeltaTable) -> None:
        monkeypatch.undo()
        check_writable(location, handle)
        commit(fast)

    monkeypatch.setattr("trickle.lake.commit.check_writable", look_while_another_commits)
    with pytest.raises(ConcurrentModification):
        commit(slow)
    assert numbers(table) == [1, 2, 3]


def test_trap_the_same_application_transaction_is_applied_once(tmp_path: Path) -> None:
    table = numbers_table(tmp_path / "theirs", [1])
    for name in ("a.parquet", "b.parquet"):
        file = write_numbers(table.location, [2], name)
        handle = DeltaTable(table.location.uri)
        handle.create_write_transaction(
            [theirs(file)],
            mode="append",
            schema=handle.schema(),
            commit_properties=CommitProperties(app_transactions=[Transaction("app", 1)]),
        )
    assert numbers(table) == [1, 2, 2], "delta-rs does not look at the transaction"

    ours = numbers_table(tmp_path / "ours", [1])
    first = adding(ours, 2, app=("app", 1))
    version = commit_once(first)
    commit(adding(open_snapshot(ours.location), 3))
    again = adding(open_snapshot(ours.location), 4, app=("app", 1))
    assert commit_once(first) == is_committed(first) == version
    assert is_committed(replace(again, read_version=ours.version)) == version
    assert numbers(ours) == [1, 2, 3]
    assert commit_once(replace(again, app=("app", 2))) == version + 2


def test_a_commit_whose_answer_was_lost_is_recognised_by_its_id(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    change = adding(table, 2)
    assert is_committed(change) is None
    assert commit(change) == commit(change) == is_committed(change) == table.version + 1
    assert numbers(table) == [1, 2]


def test_trap_a_handle_stays_old_so_versions_come_from_what_was_read(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    handle = DeltaTable(tmp_path)
    file = write_numbers(table.location, [2], "new.parquet")
    handle.create_write_transaction([theirs(file)], mode="append", schema=handle.schema())
    assert handle.version() == table.version
    newest = open_snapshot(table.location)
    assert commit(adding(newest, 3)) == newest.version + 1 == DeltaTable(tmp_path).version()


def test_trap_a_new_schema_replaces_the_old_one_and_every_file(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    wider = shape("id long, note string")
    file = write_numbers(table.location, [5], "data-5/part.parquet")
    handle = DeltaTable(tmp_path)
    handle.create_write_transaction([theirs(file)], mode="append", schema=delta_schema(wider))
    assert open_snapshot(table.location).schema == NUMBERS, "delta-rs ignores a new schema when it appends"

    newest = open_snapshot(table.location)
    with pytest.raises(InternalError, match="every file"):
        commit(replace(adding(newest, 6), schema=wider, removes=newest.files[:1]))
    commit(replace(adding(newest, 6), schema=wider, removes=newest.files))
    assert open_snapshot(table.location).schema == wider
    assert delta_rs_contents(table.location) == {(6, None): 1}


def test_trap_an_unknown_path_is_not_removed_and_a_missing_file_is_not_added(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    with pytest.raises(CorruptTable, match="to remove") as refused:
        commit(replace(adding(table, 2), removes=(DataFile("nowhere.parquet", 1),)))
    assert "nowhere.parquet" in str(refused.value)
    with pytest.raises(CorruptTable, match="to add"):
        commit(TableCommit(table.location, table.version, adds=(DataFile("nowhere.parquet", 1),)))
    with pytest.raises(InternalError, match="adds and removes"):
        commit(TableCommit(table.location, table.version, adds=table.files, removes=table.files))
    assert open_snapshot(table.location) == table


def test_trap_empty_statistics_of_one_file_spoil_those_of_all_so_none_are_written(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    bare = replace(write_numbers(table.location, [2], "bare.parquet"), rows=None, minimum={}, maximum={}, nulls={})
    commit(TableCommit(table.location, table.version, adds=(bare,)))
    counts = DeltaTable(tmp_path).get_add_actions(flatten=True)
    assert sorted(counts.column("num_records").to_pylist(), key=str) == [1, None]
    assert "" not in [entry["add"]["stats"] for entry in entries(table.location, 2) if "add" in entry]


def test_paths_with_odd_characters_are_found_again(tmp_path: Path) -> None:
    table = create(Location.of(tmp_path), NUMBERS)
    file = write_file(table.location, pa.table({"id": [1]}), NUMBERS, "data-ü/a b%20.parquet")
    commit(TableCommit(table.location, 0, adds=(file,)))
    newest = open_snapshot(table.location)
    assert numbers(newest) == [1]
    commit(replace(adding(newest, 2), removes=newest.files))
    assert numbers(newest) == [2]


def test_a_change_of_nothing_but_a_transaction_is_a_version_too(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    assert commit(TableCommit(table.location, table.version, app=("app", 3))) == table.version + 1
    assert DeltaTable(tmp_path).transaction_version("app") == 3


def test_a_schema_that_delta_rs_would_break_the_table_with_is_refused_before(tmp_path: Path) -> None:
    table = numbers_table(tmp_path / "a", [1])
    with pytest.raises(UnsupportedTable, match="timestampNtz"):
        commit(TableCommit(table.location, 1, removes=table.files, schema=shape("n timestamp_ntz")))
    split = create(Location.of(tmp_path / "b"), shape("id long, p string"), partition_by=["p"])
    with pytest.raises(UnsupportedTable, match="'p'"):
        commit(TableCommit(split.location, 0, schema=NUMBERS))
    assert DeltaTable(tmp_path / "a").version() == 1
    assert DeltaTable(tmp_path / "b").version() == 0


def test_rules_that_others_put_on_a_table_are_not_broken(tmp_path: Path, foreign: MakeForeign) -> None:
    table = numbers_table(tmp_path / "constrained", [1])
    DeltaTable(table.location.uri).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(UnsupportedTable, match="check constraint positive"):
        commit(adding(open_snapshot(table.location), -1))

    tracked = foreign(name="tracked", features=["rowTracking"], reader_version=1)
    tracked.protocol["protocol"] |= {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}
    tracked.commit(tracked.protocol)
    with pytest.raises(UnsupportedTable, match="rowTracking"):
        commit(adding(open_snapshot(tracked.location), 1))

    log_only = create(Location.of(tmp_path / "log"), NUMBERS, properties={"delta.appendOnly": "true"})
    commit(adding(log_only, 1))
    filled = open_snapshot(log_only.location)
    with pytest.raises(UnsupportedTable, match="only be added"):
        commit(TableCommit(filled.location, 1, removes=filled.files))


def test_a_file_with_a_deletion_vector_is_not_removed(foreign: MakeForeign) -> None:
    table = foreign(features=["deletionVectors"])
    table.write("a.parquet", pa.table({"id": [1, 2]}))
    table.commit(add("a.parquet", rows=2, vector=inline_vector([0])))
    hidden = open_snapshot(table.location)
    with pytest.raises(UnsupportedTable, match="deletion vectors"):
        commit(TableCommit(table.location, hidden.version, removes=hidden.files))


def test_the_log_is_never_cleaned_up_by_a_commit(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    properties = {
        "delta.checkpointInterval": "5",
        "delta.logRetentionDuration": "interval 0 seconds",
        "delta.enableExpiredLogCleanup": "true",
    }
    create(location, NUMBERS, properties=properties)
    for number in range(12):
        commit(TableCommit(location, number))
        time.sleep(0.002)
    logs = {path.name for path in (tmp_path / "_delta_log").iterdir()}
    assert {f"{number:020}.json" for number in range(13)} <= logs
    assert any("checkpoint" in name for name in logs)
