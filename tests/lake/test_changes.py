from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import ForeignTable, add, inline_vector, remove, stored_vectors, trickle_info
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.errors import HistoryLost, SchemaDrift
from trickle.lake.changes import ChangeCount, changes, consolidate, count_changes
from trickle.lake.location import Location
from trickle.lake.snapshot import latest_version

Net = dict[str, int]


def net(df: DataFrame) -> Net:
    """Weight by row, rows as text; consolidated in Python, apart from what is tested."""
    total: Counter[str] = Counter()
    for row in df.toArrow().to_pylist():
        weight = row.pop(WEIGHT)
        total[repr(sorted(row.items()))] += weight
    return {row: weight for row, weight in total.items() if weight}


def difference(place: Path, old: int, new: int) -> Net:
    """What deltalake's own reading of both versions says."""
    before, after = (
        Counter(repr(sorted(row.items())) for row in DeltaTable(place, version=v).to_pyarrow_table().to_pylist())
        for v in (old, new)
    )
    after.subtract(before)
    return {row: weight for row, weight in after.items() if weight}


def ids(df: DataFrame) -> dict[int, int]:
    return {row["id"]: row[WEIGHT] for row in consolidate(df.select("id", WEIGHT)).collect()}


def check_ranges(engine: Engine, place: Path) -> None:
    location = Location.of(place)
    newest = latest_version(location)
    for old in range(newest + 1):
        for new in {old + 1, newest} - {newest + 1}:
            found = net(changes(engine, location, old, new))
            assert found == difference(place, old, new), (old, new)
            count = count_changes(location, old, new)
            assert count.inserted is not None
            assert count.deleted is not None
            inserted = sum(w for w in found.values() if w > 0)
            deleted = -sum(w for w in found.values() if w < 0)
            assert count.inserted - count.deleted == inserted - deleted
            assert (count.inserted, count.deleted) == (inserted, deleted) if count.exact else count.inserted >= inserted


@pytest.mark.portable
@pytest.mark.parametrize("feed", ["true", "false"])
def test_the_changes_between_any_two_versions_are_the_difference_of_their_rows(
    engine: Engine, tmp_path: Path, feed: str
) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["x", "x", "y", None], "v": ["a", "a", "b", "b"]})
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration={"delta.enableChangeDataFeed": feed})
    write_deltalake(tmp_path, pa.table({"id": [5, 1], "p": ["z", "x"], "v": ["a", "a"]}), mode="append")
    DeltaTable(tmp_path).update({"v": "'changed'"}, predicate="id = 1")
    DeltaTable(tmp_path).delete("id = 3")
    source = pa.table({"id": [2, 100], "p": ["x", "y"], "v": ["merged", "new"]})
    merge = DeltaTable(tmp_path).merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    DeltaTable(tmp_path).optimize.compact()
    check_ranges(engine, tmp_path)


def test_a_feed_is_read_instead_of_the_rewritten_files(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": list(range(100))}), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(tmp_path).update({"id": "1000"}, predicate="id = 7")
    rows = changes(engine, Location.of(tmp_path), 0, 1).collect()
    assert sorted(map(tuple, rows)) == [(7, -1), (1000, 1)]


def test_weights_are_bigint_and_columns_as_asked(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "v": [2]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "v": [3]}), mode="append")
    found = changes(engine, Location.of(tmp_path), 0, 1, columns=["V"])
    assert found.columns == ["v", WEIGHT]
    assert found.schema[WEIGHT].dataType == LongType()
    assert consolidate(found).schema[WEIGHT].dataType == LongType()
    assert found.collect() == [(3, 1)]


def test_no_versions_no_change_and_no_job(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    with engine.count_jobs() as count:
        found = changes(engine, Location.of(tmp_path), 0, 0)
        assert found.collect() == []
    assert found.columns == ["id", WEIGHT]
    assert count.jobs == 0
    assert count_changes(Location.of(tmp_path), 0, 0) == ChangeCount(0, 0, exact=True)


def test_a_range_that_only_adds_reads_only_what_was_added(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    # The first file is not there: to read it would fail.
    table.commit(add("gone.parquet", rows=5))
    table.commit(add(table.write("b.parquet", {"id": [1, 2]}), rows=2))
    assert ids(changes(engine, table.location, 1, 2)) == {1: 1, 2: 1}
    assert count_changes(table.location, 1, 2) == ChangeCount(2, 0, exact=True)


def test_a_file_that_came_and_went_is_not_read(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add("gone.parquet", rows=5))
    table.commit(remove("gone.parquet"), add(table.write("b.parquet", {"id": [1]}), rows=1))
    assert ids(changes(engine, table.location, 0, 2)) == {1: 1}
    assert count_changes(table.location, 0, 2) == ChangeCount(1, 0, exact=True)


def test_a_file_that_went_and_came_back_is_no_change(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add(table.write("a.parquet", {"id": [1]}), rows=1))
    table.commit(remove("a.parquet"))
    table.commit(add("a.parquet", rows=1))
    assert ids(changes(engine, table.location, 1, 3)) == {}
    assert ids(changes(engine, table.location, 1, 2)) == {1: -1}


def test_new_statistics_of_a_file_are_no_change(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add(table.write("a.parquet", {"id": [1]})))
    table.commit(add("a.parquet", rows=1))
    assert ids(changes(engine, table.location, 1, 2)) == {}
    assert ids(changes(engine, table.location, 0, 2)) == {1: 1}
    assert count_changes(table.location, 1, 2) == ChangeCount(0, 0, exact=True)


def test_a_compaction_is_no_change_and_what_follows_it_counts(engine: Engine, foreign: MakeForeign) -> None:
    """Compacted, then restored: the removal of the compacted file changes data, its appearance did not."""
    table = foreign()
    table.commit(add(table.write("a.parquet", {"id": [1]}), rows=1), add(table.write("b.parquet", {"id": [2]}), rows=1))
    table.commit(
        remove("a.parquet", data_change=False),
        remove("b.parquet", data_change=False),
        add(table.write("ab.parquet", {"id": [1, 2]}), rows=2, data_change=False),
    )
    assert ids(changes(engine, table.location, 1, 2)) == {}
    assert count_changes(table.location, 1, 2) == ChangeCount(0, 0, exact=True)
    table.commit(remove("ab.parquet"), add("a.parquet", rows=1), add("b.parquet", rows=1))
    assert ids(changes(engine, table.location, 1, 3)) == {}
    table.commit(remove("b.parquet"))
    assert ids(changes(engine, table.location, 1, 4)) == {2: -1}
    assert ids(changes(engine, table.location, 0, 4)) == {1: 1}


@pytest.mark.portable
def test_trap_a_new_deletion_vector_is_a_change_of_its_rows(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"], features=["deletionVectors"])
    (stored,) = stored_vectors(table.root, [1, 3, 4])
    vectors: list[Any] = [None, inline_vector([1]), stored, inline_vector([0]), None]
    table.commit(add(table.write("p=1/a.parquet", {"id": [0, 1, 2, 3, 4]}), rows=5, partition={"p": "k"}))
    for before, after in itertools.pairwise(vectors):
        table.commit(
            remove("p=1/a.parquet", vector=before), add("p=1/a.parquet", rows=5, partition={"p": "k"}, vector=after)
        )
    location = table.location
    assert net(changes(engine, location, 1, 2)) == {repr([("id", 1), ("p", "k")]): -1}
    assert ids(changes(engine, location, 2, 3)) == {3: -1, 4: -1}
    assert ids(changes(engine, location, 3, 4)) == {0: -1, 1: 1, 3: 1, 4: 1}
    assert ids(changes(engine, location, 1, 5)) == {}
    assert ids(changes(engine, location, 0, 3)) == {0: 1, 2: 1}
    assert ids(changes(engine, location, 2, 4)) == {0: -1, 1: 1}
    assert changes(engine, location, 2, 3).count() == 2
    assert count_changes(location, 1, 2) == ChangeCount(0, 1, exact=True)
    assert count_changes(location, 4, 5) == ChangeCount(1, 0, exact=True)
    assert count_changes(location, 2, 3) == ChangeCount(0, 2, exact=False)
    assert count_changes(location, 0, 3) == ChangeCount(2, 0, exact=True)


def test_a_removed_file_counts_without_the_rows_its_vector_hid(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign(features=["deletionVectors"])
    vector = inline_vector([0, 1])
    table.commit(add(table.write("a.parquet", {"id": [0, 1, 2]}), rows=3, vector=vector))
    table.commit(remove("a.parquet", vector=vector))
    assert ids(changes(engine, table.location, 1, 2)) == {2: -1}
    assert count_changes(table.location, 1, 2) == ChangeCount(0, 1, exact=True)


def test_a_bare_remove_gets_its_partition_value_from_the_add(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"])
    table.commit(add(table.write("a.parquet", {"id": [1]}), partition={"p": "x"}, rows=1))
    table.commit(remove("a.parquet"))
    assert changes(engine, table.location, 1, 2).collect() == [(1, "x", -1)]
    assert count_changes(table.location, 1, 2) == ChangeCount(0, 1, exact=True)


def test_trap_an_unknown_count_is_unknown_and_not_zero(foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add("a.parquet", rows=3), add("b.parquet", stats=""))
    table.commit(add("c.parquet", rows=4))
    table.commit(remove("b.parquet"))
    assert count_changes(table.location, 0, 1) == ChangeCount(None, 0, exact=True)
    assert count_changes(table.location, 1, 2) == ChangeCount(4, 0, exact=True)
    assert count_changes(table.location, 2, 3) == ChangeCount(0, None, exact=True)


def test_rewritten_files_bound_the_count(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": list(range(10))}))
    DeltaTable(tmp_path).delete("id = 3")
    assert count_changes(Location.of(tmp_path), 0, 1) == ChangeCount(9, 10, exact=False)


# What Trickle itself keeps


def with_exact_changes(table: ForeignTable, *, as_text: bool = False) -> None:
    """Version 1 holds ids 1 to 3; version 2 replaces 2 by 20, and says so in change rows."""
    table.commit(add(table.write("a.parquet", {"id": [1, 2, 3]}), rows=3))
    table.write(
        "_trickle_changes/x/part-0.parquet",
        {"id": [2, 20], WEIGHT: [-1, 1], FILE: ["a.parquet", None], ROW: [1, None]},
    )
    info = trickle_info(
        kind="merge", changes=[{"path": "_trickle_changes/x/part-0.parquet", "rows": 2}], inserted=1, deleted=1
    )
    if as_text:
        info["commitInfo"]["trickle"] = json.dumps(info["commitInfo"]["trickle"])
    table.commit(info, remove("a.parquet"), add(table.write("b.parquet", {"id": [1, 20, 3]}), rows=3))


@pytest.mark.portable
@pytest.mark.parametrize("as_text", [False, True])
def test_exact_change_rows_are_read_instead_of_the_files(engine: Engine, foreign: MakeForeign, as_text: bool) -> None:
    table = foreign()
    with_exact_changes(table, as_text=as_text)
    rows = changes(engine, table.location, 1, 2)
    assert rows.columns == ["id", WEIGHT]
    assert sorted(map(tuple, rows.collect())) == [(2, -1), (20, 1)]
    assert count_changes(table.location, 1, 2) == ChangeCount(1, 1, exact=True)


def test_accounts_of_different_kinds_add_up(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    with_exact_changes(table)
    table.commit(add(table.write("c.parquet", {"id": [4]}), rows=1))
    table.commit(
        {"cdc": {"path": table.write("_change_data/d.parquet", {"id": [4], "_change_type": ["delete"]}), "size": 1}},
        remove("c.parquet"),
    )
    assert ids(changes(engine, table.location, 0, 4)) == {1: 1, 20: 1, 3: 1}
    assert ids(changes(engine, table.location, 1, 3)) == {2: -1, 20: 1, 4: 1}
    assert count_changes(table.location, 0, 3) == ChangeCount(5, 1, exact=True)
    assert not count_changes(table.location, 0, 4).exact


def test_a_rewrite_without_a_logical_change_is_none(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add(table.write("a.parquet", {"id": [1]}), rows=1))
    table.commit(
        trickle_info(kind="alter", changes=[], inserted=0, deleted=0),
        table.metadata("id long, new string"),
        remove("a.parquet"),
        add(table.write("b.parquet", {"id": [1], "new": ["x"]}), rows=1),
    )
    assert changes(engine, table.location, 1, 2).collect() == []
    assert count_changes(table.location, 1, 2) == ChangeCount(0, 0, exact=True)


def test_information_without_change_rows_leaves_the_files_to_tell(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(trickle_info(kind="append"), add(table.write("a.parquet", {"id": [1]}), rows=1))
    assert ids(changes(engine, table.location, 0, 1)) == {1: 1}


# Lost history


def checkpointed(place: Path) -> Location:
    """Versions 0 to 4, each with a row more; 2 updates too. Checkpoints at 1 and 4."""
    for number in range(5):
        write_deltalake(place, pa.table({"id": [number]}), mode="append")
        if number in (1, 4):
            DeltaTable(place).create_checkpoint()
    return Location.of(place)


def forget(location: Location, *versions: int) -> None:
    for version in versions:
        location.delete(f"_delta_log/{version:020d}.json")


def test_without_its_commits_the_change_is_the_difference_of_the_snapshots(engine: Engine, tmp_path: Path) -> None:
    location = checkpointed(tmp_path)
    forget(location, 0, 1, 2, 3, 4)
    assert ids(changes(engine, location, 1, 4)) == {2: 1, 3: 1, 4: 1}
    assert count_changes(location, 1, 4) == ChangeCount(3, 0, exact=True)


def test_without_its_old_snapshot_the_change_is_what_the_commits_tell(engine: Engine, tmp_path: Path) -> None:
    location = checkpointed(tmp_path)
    location.delete("_delta_log/00000000000000000001.checkpoint.parquet")
    forget(location, 0, 1, 2)
    assert ids(changes(engine, location, 2, 4)) == {3: 1, 4: 1}


def test_history_that_is_gone_is_said_to_be_lost(engine: Engine, tmp_path: Path) -> None:
    location = checkpointed(tmp_path)
    forget(location, 0, 1, 2, 3, 4)
    with pytest.raises(HistoryLost):
        changes(engine, location, 2, 4)
    with pytest.raises(HistoryLost):
        count_changes(location, 0, 4)


def test_a_table_that_went_back_in_time_has_lost_its_history(engine: Engine, tmp_path: Path) -> None:
    location = checkpointed(tmp_path)
    with pytest.raises(HistoryLost):
        changes(engine, location, 4, 2)
    with pytest.raises(HistoryLost):
        changes(engine, location, 4, 7)


@pytest.mark.parametrize("kind_of_file", ["removed", "feed", "exact"])
def test_files_that_were_vacuumed_are_lost_history(engine: Engine, foreign: MakeForeign, kind_of_file: str) -> None:
    table = foreign()
    table.commit(add(table.write("a.parquet", {"id": [1]}), rows=1))
    match kind_of_file:
        case "removed":
            table.commit(remove("a.parquet"))
            table.location.delete("a.parquet")
        case "feed":
            table.commit({"cdc": {"path": "_change_data/gone.parquet", "size": 1}})
        case "exact":
            table.commit(trickle_info(changes=[{"path": "_trickle_changes/gone.parquet", "rows": 1}]))
    with pytest.raises(HistoryLost, match="gone"):
        changes(engine, table.location, 1, 2)


# Other shapes


def test_a_column_that_came_inside_the_range_is_left_out(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "new": ["x"]}), mode="append", schema_mode="merge")
    write_deltalake(tmp_path, pa.table({"id": [3], "new": ["y"]}), mode="append")
    location = Location.of(tmp_path)
    assert changes(engine, location, 0, 2).columns == ["id", WEIGHT]
    assert changes(engine, location, 1, 2).collect() == [(3, "y", 1)]
    with pytest.raises(SchemaDrift, match="new"):
        changes(engine, location, 0, 2, columns=["id", "new"])
    with pytest.raises(SchemaDrift, match="idd"):
        changes(engine, location, 0, 2, columns=["idd"])


def test_a_column_that_changed_its_type_has_drifted(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "v": ["1"]}))
    write_deltalake(tmp_path, pa.table({"id": [1], "v": [1]}), mode="overwrite", schema_mode="overwrite")
    location = Location.of(tmp_path)
    assert ids(changes(engine, location, 0, 1, columns=["id"])) == {}
    with pytest.raises(SchemaDrift, match="'v'"):
        changes(engine, location, 0, 1, columns=["v"])


def test_a_column_that_was_away_for_a_while_has_drifted(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, v long")
    table.commit(table.metadata("id long"))
    table.commit(table.metadata("id long, v long"))
    with pytest.raises(SchemaDrift, match="'v'"):
        changes(engine, table.location, 0, 2, columns=["v"])


# The net of changes


def weighted(engine: Engine, text: str) -> DataFrame:
    return engine.sql(f"SELECT *, CAST(w AS BIGINT) AS {WEIGHT} FROM ({text})").drop("w")


@pytest.mark.portable
@pytest.mark.parametrize(
    "value, same",
    [
        ("CAST(NULL AS INT)", "CAST(NULL AS INT)"),
        ("double('NaN')", "double('NaN')"),
        ("0.0D", "-0.0D"),
        ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
        ("array(map('a', 1, 'b', 2))", "array(map('b', 2, 'a', 1))"),
        ("struct(map(1, map('a', 1, 'b', 2), 2, map('c', 1)))", "struct(map(2, map('c', 1), 1, map('b', 2, 'a', 1)))"),
        ("map('a', double('NaN'), 'b', 0.0D)", "map('b', -0.0D, 'a', double('NaN'))"),
        ("map('a', CAST(NULL AS INT))", "map('a', CAST(NULL AS INT))"),
        ("map()", "map()"),
        ("named_struct('x', CAST(NULL AS INT))", "named_struct('x', CAST(NULL AS INT))"),
        ("X'00FF'", "X'00FF'"),
        ("1.10BD", "1.10BD"),
    ],
)
def test_equal_rows_cancel_whatever_their_type(engine: Engine, value: str, same: str) -> None:
    gone = weighted(engine, f"SELECT {value} AS v, 1 AS w UNION ALL SELECT {same}, -1")
    assert consolidate(gone).collect() == []
    twice = weighted(engine, f"SELECT {value} AS v, 1 AS w UNION ALL SELECT {same}, 1")
    assert [row[WEIGHT] for row in consolidate(twice).collect()] == [2]
    assert consolidate(twice).schema["v"].dataType == twice.schema["v"].dataType


@pytest.mark.parametrize(
    "left, right",
    [
        ("CAST(NULL AS STRING)", "''"),
        ("map('a', 1)", "map('a', CAST(NULL AS INT))"),
        ("map('a', 1)", "CAST(NULL AS MAP<STRING, INT>)"),
        ("array(1, 2)", "array(2, 1)"),
        ("named_struct('x', CAST(NULL AS INT))", "CAST(NULL AS STRUCT<x: INT>)"),
    ],
)
def test_rows_that_differ_do_not_cancel(engine: Engine, left: str, right: str) -> None:
    both = weighted(engine, f"SELECT {left} AS v, 1 AS w UNION ALL SELECT {right}, -1")
    assert sorted(row[WEIGHT] for row in consolidate(both).collect()) == [-1, 1]


def test_maps_keep_their_entries_through_the_net(engine: Engine) -> None:
    rows = weighted(engine, "SELECT map('b', array(map(2, 'y', 1, 'x')), 'a', null) AS v, 3 AS w")
    (row,) = consolidate(rows).collect()
    assert row["v"] == {"b": [{2: "y", 1: "x"}], "a": None}
    assert row[WEIGHT] == 3


def test_rows_without_columns_have_a_net_too(engine: Engine) -> None:
    rows = weighted(engine, "SELECT 5 AS w UNION ALL SELECT -2")
    assert [tuple(row) for row in consolidate(rows).collect()] == [(3,)]
    assert consolidate(rows.where("false")).collect() == []


def test_columns_with_dots_are_grouped_like_others(engine: Engine) -> None:
    rows = weighted(engine, "SELECT 1 AS `a.b`, 2 AS `c``d`, 1 AS w")
    assert consolidate(rows).collect() == [(1, 2, 1)]
