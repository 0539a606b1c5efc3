from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import ForeignTable, add, inline_vector, remove
from trickle.errors import CorruptTable, HistoryLost, UnknownTable
from trickle.lake.location import Location
from trickle.lake.snapshot import latest_version, open_snapshot


def append(place: Path, count: int) -> None:
    for number in range(count):
        write_deltalake(place, pa.table({"id": [number]}), mode="append")


def paths(location: Location, version: int | None = None) -> set[str]:
    return {file.path for file in open_snapshot(location, version).files}


def paths_by_deltalake(place: Path, version: int | None = None) -> set[str]:
    table = DeltaTable(place, version=version)
    return set(pa.table(table.get_add_actions()).column("path").to_pylist())


def test_a_snapshot_tells_what_deltalake_tells(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, None], "p": ["x", "x", "y"]})
    write_deltalake(
        tmp_path, rows, partition_by=["p"], configuration={"delta.appendOnly": "true"}, description="a table"
    )
    snapshot = open_snapshot(Location.of(tmp_path))
    theirs = DeltaTable(tmp_path)
    assert snapshot.version == 0
    assert snapshot.table_id == str(theirs.metadata().id)
    assert json.loads(snapshot.schema.json()) == json.loads(theirs.schema().to_json())
    assert snapshot.partition_by == ("p",)
    assert snapshot.properties == {"delta.appendOnly": "true"}
    by_partition = {file.partition["p"]: file for file in snapshot.files}
    assert by_partition["x"].rows == 2
    assert by_partition["x"].minimum == {"id": 1}
    assert by_partition["x"].maximum == {"id": 2}
    assert by_partition["y"].nulls == {"id": 1}


@pytest.mark.parametrize("backwards", [False, True], ids=["one from the other", "each by itself"])
def test_every_version_of_a_long_log_is_replayed_as_deltalake_does(tmp_path: Path, backwards: bool) -> None:
    append(tmp_path, 12)
    theirs = DeltaTable(tmp_path)
    theirs.delete("id < 3")
    theirs.create_checkpoint()
    append(tmp_path, 3)
    DeltaTable(tmp_path).optimize.compact()
    location = Location.of(tmp_path)
    versions = range(latest_version(location) + 1)
    for version in reversed(versions) if backwards else versions:
        assert paths(location, version) == paths_by_deltalake(tmp_path, version)


def test_the_same_through_a_uri(tmp_path: Path) -> None:
    append(tmp_path, 4)
    DeltaTable(tmp_path).create_checkpoint()
    append(tmp_path, 2)
    remote = Location(tmp_path.as_uri())
    assert paths(remote) == paths_by_deltalake(tmp_path)
    assert latest_version(remote) == latest_version(remote, 3) == 5


def test_a_table_lives_on_its_checkpoint_when_older_commits_are_gone(tmp_path: Path) -> None:
    append(tmp_path, 5)
    DeltaTable(tmp_path).create_checkpoint()
    append(tmp_path, 2)
    for version in range(5):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    location = Location.of(tmp_path)
    assert len(paths(location)) == 7
    assert len(paths(location, 4)) == 5
    with pytest.raises(HistoryLost, match="version 3"):
        open_snapshot(location, 3)


def test_a_version_of_the_future_is_not_there(tmp_path: Path) -> None:
    append(tmp_path, 1)
    with pytest.raises(HistoryLost, match="version 5"):
        open_snapshot(Location.of(tmp_path), 5)


@pytest.mark.parametrize("made", ["nothing", "empty folder", "file", "empty log"])
def test_a_place_without_a_table_is_an_unknown_table(tmp_path: Path, made: str) -> None:
    place = tmp_path / "t"
    match made:
        case "empty folder":
            place.mkdir()
        case "file":
            place.write_text("not a table")
        case "empty log":
            (place / "_delta_log").mkdir(parents=True)
    for look in (open_snapshot, latest_version):
        with pytest.raises(UnknownTable):
            look(Location.of(place))


def test_a_broken_commit_is_reported_as_such(foreign: MakeForeign) -> None:
    table = foreign()
    (table.root / "_delta_log" / f"{1:020d}.json").write_text('{"add": {"path": ')
    with pytest.raises(CorruptTable, match="commit 1"):
        open_snapshot(table.location)


def test_a_log_without_a_schema_is_reported_as_such(foreign: MakeForeign) -> None:
    table = foreign(first_commit=False)
    table.commit(table.protocol)
    with pytest.raises(CorruptTable, match="no schema"):
        open_snapshot(table.location)


def test_trap_empty_statistics_of_one_file_leave_the_others_known(foreign: MakeForeign) -> None:
    table = foreign()
    known = json.dumps({"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0}})
    table.commit(
        add("known.parquet", stats=known), add("empty.parquet", stats=""), add("none.parquet"), add("bad", stats="{")
    )
    files = {file.path: file for file in open_snapshot(table.location).files}
    assert (files["known.parquet"].rows, files["known.parquet"].minimum) == (2, {"id": 1})
    for name in ("empty.parquet", "none.parquet", "bad"):
        assert files[name].rows is None
        assert files[name].live_rows is None
        assert (files[name].minimum, files[name].nulls) == ({}, {})


def test_a_decimal_statistic_keeps_all_its_digits(foreign: MakeForeign) -> None:
    table = foreign("d decimal(38,10)")
    table.commit(add("a.parquet", stats='{"numRecords": 1, "maxValues": {"d": 12345678901234567890.0123456789}}'))
    assert str(open_snapshot(table.location).files[0].maximum["d"]) == "12345678901234567890.0123456789"


def test_partition_values_are_as_the_log_spells_them(foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"])
    table.commit(*(add(f"{n}.parquet", partition={"p": value}) for n, value in enumerate(["", None, "a b"])))
    assert [file.partition for file in open_snapshot(table.location).files] == [{"p": ""}, {"p": None}, {"p": "a b"}]


def test_trap_a_new_deletion_vector_keeps_the_path_and_is_another_file(foreign: MakeForeign) -> None:
    table = foreign(features=["deletionVectors"])
    first, second = inline_vector([0]), inline_vector([0, 3])
    table.commit(add("a.parquet", rows=10))
    table.commit(add("a.parquet", rows=10, vector=first), remove("a.parquet"))
    # A commit's lines have no order: here the removal comes last.
    table.commit(add("a.parquet", rows=10, vector=second), remove("a.parquet", vector=first))
    seen = [open_snapshot(table.location, version).files for version in (1, 2, 3)]
    assert [len(files) for files in seen] == [1, 1, 1]
    assert len({files[0].identity for files in seen}) == 3
    assert [(files[0].path, files[0].live_rows) for files in seen] == [
        ("a.parquet", 10),
        ("a.parquet", 9),
        ("a.parquet", 8),
    ]


def test_adding_a_file_again_replaces_its_statistics(foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add("a.parquet"))
    table.commit(add("a.parquet", rows=7, data_change=False))
    (file,) = open_snapshot(table.location).files
    assert file.rows == 7


def checkpoint_rows(table: ForeignTable) -> list[dict[str, object]]:
    """The actions of the newest version, as a checkpoint holds them."""
    actions = [
        json.loads(line)
        for log in sorted((table.root / "_delta_log").glob("*.json"))
        for line in log.read_text().splitlines()
    ]
    for action in actions:
        if "add" in action:
            action["add"]["partitionValues"] = list(action["add"]["partitionValues"].items())
        if "metaData" in action:
            action["metaData"]["configuration"] = list(action["metaData"]["configuration"].items())
            action["metaData"]["format"]["options"] = []
    return actions


STRINGS = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    {
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": STRINGS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": STRINGS,
                "createdTime": pa.int64(),
            }
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": STRINGS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "sidecar": pa.struct(
            {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64(), "tags": STRINGS}
        ),
        "checkpointMetadata": pa.struct({"version": pa.int64()}),
    }
)


def write_checkpoint(path: Path, actions: list[dict[str, object]]) -> None:
    path.parent.mkdir(exist_ok=True)
    columns = {name: pa.array([a.get(name) for a in actions], CHECKPOINT.field(name).type) for name in CHECKPOINT.names}
    pq.write_table(pa.table(columns), path)


def forget_commits(table: ForeignTable) -> Path:
    log = table.root / "_delta_log"
    for commit in log.glob("*.json"):
        commit.unlink()
    return log


def test_a_checkpoint_in_several_parts_counts_when_all_are_there(foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"])
    table.commit(add("a.parquet", rows=1, partition={"p": "x"}), add("b.parquet", rows=2, partition={"p": None}))
    actions = checkpoint_rows(table)
    log = forget_commits(table)
    write_checkpoint(log / f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet", actions[:3])
    with pytest.raises(UnknownTable):
        open_snapshot(table.location)
    write_checkpoint(log / f"{1:020d}.checkpoint.{2:010d}.{2:010d}.parquet", actions[3:])
    files = open_snapshot(table.location).files
    assert [(f.path, f.rows, f.partition) for f in files] == [
        ("a.parquet", 1, {"p": "x"}),
        ("b.parquet", 2, {"p": None}),
    ]
    assert paths(table.location) == paths_by_deltalake(table.root)


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_checkpoint_with_sidecars_is_followed(foreign: MakeForeign, kind: str) -> None:
    table = foreign(features=["v2Checkpoint"])
    table.commit(add("a.parquet", rows=1), add("b.parquet", rows=2))
    actions = checkpoint_rows(table)
    log = forget_commits(table)
    write_checkpoint(log / "_sidecars" / "side.parquet", actions[2:])
    size = (log / "_sidecars" / "side.parquet").stat().st_size
    head: list[dict[str, object]] = [
        {"checkpointMetadata": {"version": 1}},
        {"sidecar": {"path": "side.parquet", "sizeInBytes": size, "modificationTime": 0}},
    ]
    name = f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
    if kind == "parquet":
        write_checkpoint(log / name, [*head, *actions[:2]])
    else:
        plain = [table.protocol, table.metadata("id long")]
        (log / name).write_text("\n".join(json.dumps(action) for action in [*head, *plain]))
    assert paths(table.location) == {"a.parquet", "b.parquet"}
    assert paths(table.location) == paths_by_deltalake(table.root)


def test_the_newest_version_is_found_without_a_listing_when_it_is_known(tmp_path: Path) -> None:
    append(tmp_path, 3)
    location = Location.of(tmp_path)
    assert latest_version(location, 2) == 2
    append(tmp_path, 40)
    assert latest_version(location, 2) == latest_version(location) == 42


def test_a_known_version_that_was_cleaned_up_is_no_obstacle(tmp_path: Path) -> None:
    append(tmp_path, 5)
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(5):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert latest_version(Location.of(tmp_path), 2) == 4


def test_what_others_commit_in_between_is_seen_at_once(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    for _ in range(3):
        append(tmp_path, 2)
        assert paths(location) == paths_by_deltalake(tmp_path)
    DeltaTable(tmp_path).delete()
    assert paths(location) == set()
    assert len(paths(location, 5)) == 6


def test_a_remembered_version_that_was_cleaned_up_is_lost_all_the_same(tmp_path: Path) -> None:
    append(tmp_path, 5)
    location = Location.of(tmp_path)
    assert len(paths(location, 2)) == 3
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(HistoryLost, match="version 2"):
        open_snapshot(location, 2)
    assert len(paths(location)) == 5


def test_a_table_made_anew_in_the_same_place_is_seen_at_once(tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, 2)
    first = open_snapshot(Location.of(place))
    shutil.rmtree(place)
    append(place, 2)
    second = open_snapshot(Location.of(place))
    assert first.version == second.version
    assert {f.path for f in first.files}.isdisjoint(f.path for f in second.files)
    assert first.table_id != second.table_id
