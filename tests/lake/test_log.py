from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add, inline_vector, remove
from trickle.errors import CorruptTable, HistoryLost
from trickle.lake.location import Location
from trickle.lake.log import read_commits


def test_commits_tell_what_was_added_and_removed(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}))
    DeltaTable(tmp_path).delete("id = 2", commit_properties=CommitProperties(custom_metadata={"why": "because"}))
    created, deleted = read_commits(Location.of(tmp_path), -1, 1)
    assert [created.version, deleted.version] == [0, 1]
    assert created.metadata_changed
    assert created.schema is not None
    assert created.schema.names == ["id"]
    assert [f.rows for f in created.adds] == [3]
    assert not deleted.metadata_changed
    assert deleted.schema is None
    assert [f.rows for f in deleted.adds] == [2]
    assert deleted.removes[0].path == created.adds[0].path
    assert deleted.info["operation"] == "DELETE"
    assert deleted.info["why"] == "because"


def test_a_compaction_moves_files_and_changes_no_data(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    (commit,) = read_commits(Location.of(tmp_path), 2, 3)
    assert (commit.adds, commit.removes) == ((), ())
    assert (len(commit.moved_in), len(commit.moved_out)) == (1, 3)


def test_change_data_files_are_kept_apart(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(tmp_path).update({"id": "5"}, predicate="id = 1")
    (commit,) = read_commits(Location.of(tmp_path), 0, 1)
    assert [f.path.split("/")[0] for f in commit.cdc] == ["_change_data"]


def test_a_commit_that_is_gone_is_lost_history(foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add("a.parquet"))
    table.commit(add("b.parquet"))
    (table.root / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(HistoryLost, match="version 1"):
        read_commits(table.location, 0, 2)
    assert [c.version for c in read_commits(table.location, 1, 2)] == [2]


def test_a_line_that_is_no_action_is_a_corrupt_table(foreign: MakeForeign) -> None:
    table = foreign()
    (table.root / "_delta_log" / f"{1:020d}.json").write_text("[1, 2]\n")
    with pytest.raises(CorruptTable, match="commit 1"):
        read_commits(table.location, 0, 1)


def test_vectors_of_both_sides_are_told_apart(foreign: MakeForeign) -> None:
    table = foreign(features=["deletionVectors"])
    vector = inline_vector([1])
    table.commit(remove("a.parquet"), add("a.parquet", rows=3, vector=vector))
    (commit,) = read_commits(table.location, 0, 1)
    assert commit.removes[0].identity == ("a.parquet", None)
    assert commit.adds[0].identity == ("a.parquet", "i" + vector["pathOrInlineDv"])
    assert commit.adds[0].deleted == 1


def test_an_empty_range_reads_nothing(foreign: MakeForeign) -> None:
    assert read_commits(foreign().location, 0, 0) == []
