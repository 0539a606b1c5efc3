"""Weighted deltas applied to a table: by whole row and by key."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, MapType, StringType, StructField, StructType

from tests.lake.tables import (
    Row,
    clustered,
    committed,
    contents,
    delta,
    delta_rs_contents,
    files_below,
    filled,
    named,
    net_changes,
    shape,
)
from trickle.algebra.weights import WEIGHT
from trickle.engine import Engine
from trickle.errors import CorruptTable, InvalidData, InvalidOption, NegativeMultiplicity, UnknownColumn
from trickle.lake import changerows, merge, rewrite, search
from trickle.lake.candidates import candidate_files
from trickle.lake.changerows import ChangeRows
from trickle.lake.evolve import add_columns
from trickle.lake.few import Few
from trickle.lake.merge import locate_keys, locate_rows, merge_keyed, merge_rows, merge_table
from trickle.lake.rewrite import append
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stage import stage_changes

PAIRS = shape("a long, b string")
KEYED = shape("k long, v string")


def apply_rows(engine: Engine, table: Snapshot, *rows: tuple[Row, int]) -> Snapshot:
    return committed(merge_rows(engine, table, delta(engine, table.schema, rows)))


def apply_keyed(engine: Engine, table: Snapshot, *rows: tuple[Row, int]) -> Snapshot:
    return committed(merge_keyed(engine, table, delta(engine, table.schema, rows), ["k"]))


@pytest.mark.portable
def test_by_whole_row_duplicates_are_counted_and_nulls_are_equal(engine: Engine, tmp_path: Path) -> None:
    held: list[Row] = [(1, "x"), (1, "x"), (1, "x"), (None, None), (None, None), (2, None), (3, "y")]
    table = filled(engine, tmp_path, PAIRS, held)
    newer = apply_rows(
        engine,
        table,
        ((1, "x"), -2),
        ((None, None), -1),
        ((2, None), -1),
        ((2, None), 3),
        ((4, "new"), 2),
        ((3, "y"), 0),
    )
    expected = {(1, "x"): 1, (None, None): 1, (2, None): 3, (3, "y"): 1, (4, "new"): 2}
    assert contents(engine, newer) == delta_rs_contents(table.location) == expected
    assert net_changes(engine, newer, table.version) == {(1, "x"): -2, (None, None): -1, (2, None): 2, (4, "new"): 2}


def test_a_delta_is_netted_before_it_is_applied(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, PAIRS, [(1, "x")])
    absent: Row = (9, "absent")
    newer = apply_rows(engine, table, (absent, -1), ((1, "x"), -1), (absent, 1), ((1, "y"), 1))
    assert contents(engine, newer) == {(1, "y"): 1}
    nothing = merge_rows(engine, newer, delta(engine, PAIRS, [(absent, -1), (absent, 1)]))
    assert nothing.is_empty
    assert nothing.stage_ids == ()


def test_rows_of_every_kind_are_found_by_their_value(engine: Engine, tmp_path: Path) -> None:
    schema = StructType(
        [
            StructField("f", DoubleType()),
            StructField("m", MapType(StringType(), StructType([StructField("x", MapType(LongType(), LongType()))]))),
            *shape("d decimal(38;18), t timestamp_ntz, b binary").fields,
        ]
    )
    nan, one = float("nan"), Decimal("1.000000000000000001")
    deep = [("l", {"x": None}), ("k", {"x": [(3, 4), (1, 2)]})]
    turned = [("k", {"x": [(1, 2), (3, 4)]}), ("l", {"x": None})]
    table = filled(
        engine,
        tmp_path,
        schema,
        [(nan, deep, one, None, b"\0"), (-0.0, [], None, None, None), (1.5, None, one, None, b"")],
    )
    newer = apply_rows(engine, table, ((nan, turned, one, None, b"\0"), -1), ((0.0, [], None, None, None), -1))
    assert contents(engine, newer) == delta_rs_contents(table.location) == {(1.5, None, one, None, b""): 1}


def test_more_deletions_than_copies_are_refused_and_leave_nothing(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, PAIRS, [(1, "x"), (1, "x"), (2, None)])
    before = files_below(table.location)
    for rows in ([((1, "x"), -3), ((5, "n"), 1)], [((2, "x"), -1)]):
        with pytest.raises(NegativeMultiplicity, match="does not hold") as refused:
            merge_rows(engine, table, delta(engine, PAIRS, rows))
        assert "1 of" in str(refused.value)
    assert files_below(table.location) == before


def test_only_insertions_add_files_and_nothing_else(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, PAIRS, [(1, "x")])
    prepared = merge_rows(engine, table, delta(engine, PAIRS, [((2, "y"), 2)]))
    assert (prepared.inserted, prepared.removes, len(prepared.adds)) == (2, (), 1)
    assert "changes" not in prepared.info


def test_of_64_files_a_merge_rewrites_the_3_that_hold_the_rows(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=64, rows_each=20)
    touched = [5, 640, 1279]
    rows = [((k, f"v{k}"), -1) for k in touched] + [((k, "new"), 1) for k in touched]
    newer = apply_keyed(engine, table, *rows)
    assert len(named(table.location, newer.version, "remove")) == 3
    assert len(named(table.location, newer.version, "add")) == 3
    assert sorted(str(file.minimum["k"]) for file in newer.files) == sorted(str(n * 20) for n in range(64))

    rows = [((k, "new"), -1) for k in touched] + [((k, "newer"), 1) for k in touched]
    newest = apply_rows(engine, newer, *rows)
    assert len(named(table.location, newest.version, "remove")) == 3
    assert contents(engine, newest) == {(k, "newer" if k in touched else f"v{k}"): 1 for k in range(1280)}
    assert net_changes(engine, newest, table.version) == {
        **{(k, f"v{k}"): -1 for k in touched},
        **{(k, "newer"): 1 for k in touched},
    }


def test_few_keys_far_apart_do_not_take_in_the_files_between_them(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=64, rows_each=20)
    staged, _ = stage_changes(delta(engine, KEYED, [((k, ""), -1) for k in (5, 640, 1279)]), table.location)
    rows = ChangeRows(engine, table.location, staged)
    assert candidate_files(table, rows.deletions(["k"]), pick(KEYED, ["k"])) == (
        table.files[0],
        table.files[32],
        table.files[63],
    )
    assert candidate_files(table, rows.deletions(["k"]).slice(0, 0), pick(KEYED, ["k"])) == table.files


@pytest.mark.portable
def test_by_key_null_is_a_key_and_the_change_tells_the_true_old_row(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, KEYED, [(None, "nothing"), (1, "one"), (2, "two"), (3, "three")])
    newer = apply_keyed(
        engine,
        table,
        ((None, "unknown"), -1),
        ((None, "new"), 1),
        ((2, None), -1),
        ((4, "four"), 1),
        ((3, "other"), -1),
    )
    assert contents(engine, newer) == delta_rs_contents(table.location)
    assert contents(engine, newer) == {(None, "new"): 1, (1, "one"): 1, (4, "four"): 1}
    assert net_changes(engine, newer, table.version) == {
        (None, "nothing"): -1,
        (None, "new"): 1,
        (2, "two"): -1,
        (3, "three"): -1,
        (4, "four"): 1,
    }


def test_by_key_an_absent_or_repeated_key_is_refused_and_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, KEYED, [(1, "a"), (1, "b"), (2, "c")])
    before = files_below(table.location)
    with pytest.raises(NegativeMultiplicity, match="does not hold"):
        merge_keyed(engine, table, delta(engine, KEYED, [((2, ""), -1), ((9, ""), -1), ((9, "x"), 1)]), ["k"])
    with pytest.raises(CorruptTable, match="not unique"):
        merge_keyed(engine, table, delta(engine, KEYED, [((1, ""), -1)]), ["k"])
    with pytest.raises(NegativeMultiplicity, match="does not hold"):
        merge_keyed(engine, table, delta(engine, KEYED, [((2, ""), -2)]), ["k"])
    with pytest.raises(NegativeMultiplicity, match="twice"):
        merge_keyed(engine, table, delta(engine, KEYED, [((2, "c"), -1), ((2, ""), -1)]), ["k"])
    with pytest.raises(InvalidOption):
        merge_keyed(engine, table, delta(engine, KEYED, []), [])
    with pytest.raises(UnknownColumn):
        merge_keyed(engine, table, delta(engine, KEYED, []), ["key"])
    with pytest.raises(InvalidData):
        merge_rows(engine, table, delta(engine, PAIRS, []))
    assert files_below(table.location) == before


def test_a_partitioned_table_is_merged_within_its_partitions(engine: Engine, tmp_path: Path) -> None:
    schema = shape("k long, p string, v string")
    table = filled(engine, tmp_path, schema, [(k, p, "old") for p in ("a", "b", None) for k in (1, 2)], ["p"])
    newer = committed(
        merge_keyed(engine, table, delta(engine, schema, [((1, None, ""), -1), ((1, None, "new"), 1)]), ["p", "k"])
    )
    assert len(named(table.location, newer.version, "remove")) == 1
    newest = apply_rows(engine, newer, ((2, "a", "old"), -1), ((2, "c", "old"), 1))
    assert contents(engine, newest) == delta_rs_contents(table.location)
    assert contents(engine, newest) == {
        (1, "a", "old"): 1,
        (1, "b", "old"): 1,
        (2, "b", "old"): 1,
        (1, None, "new"): 1,
        (2, None, "old"): 1,
        (2, "c", "old"): 1,
    }


def test_large_deltas_take_the_way_through_files_and_give_the_same(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changerows, "LOCAL_ROWS", 0)
    monkeypatch.setattr(merge, "DRIVER_ROWS", 0)
    table = clustered(engine, tmp_path, files=3, rows_each=4)
    table = committed(append(engine, table, delta(engine, KEYED, [((1, "v1"), 0)]).drop("__trickle_weight")))
    newer = apply_rows(engine, table, ((1, "v1"), -1), ((7, "v7"), -1), ((7, "new"), 2))
    newest = apply_keyed(engine, newer, ((11, ""), -1), ((11, "new"), 1), ((12, "new"), 1))
    expected = Counter({(k, f"v{k}"): 1 for k in range(12) if k not in (7, 11)})
    expected.update({(7, "new"): 2, (11, "new"): 1, (12, "new"): 1})
    assert contents(engine, newest) == expected
    kept = {path.split("/")[1] for path in files_below(table.location) if path.startswith("_trickle_changes")}
    assert len(kept) == 2, "one set of change rows for each merge, and no victims left behind"


def test_trap_a_merge_broadcasts_its_small_side_and_has_no_full_outer_join(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = clustered(engine, tmp_path, files=3, rows_each=4)
    staged, _ = stage_changes(delta(engine, KEYED, [((1, "v1"), -1), ((1, "new"), 1)]), table.location)
    rows = ChangeRows(engine, table.location, staged)
    for located in (
        locate_rows(engine, table, table.files, rows),
        locate_keys(engine, table, table.files, rows, pick(KEYED, ["k"])),
    ):
        located.explain()
        plan = capsys.readouterr().out
        assert "BroadcastHashJoin" in plan
        assert "SortMergeJoin" not in plan
        assert "NestedLoop" not in plan
        assert "FullOuter" not in plan


def test_a_small_merge_takes_few_jobs(engine: Engine, tmp_path: Path) -> None:
    table = clustered(engine, tmp_path, files=8, rows_each=5)
    rows = delta(engine, KEYED, [((1, "v1"), -1), ((1, "new"), 1), ((11, "v11"), -1)])
    with engine.count_jobs() as by_key:
        merge_keyed(engine, table, rows, ["k"]).discard()
    with engine.count_jobs() as by_row:
        merge_rows(engine, table, rows, is_net=True).discard()
    # The delta, the search and the rewrite; the rest are broadcasts of small relations.
    assert by_key.jobs is not None
    assert by_row.jobs is not None
    assert by_key.jobs <= 7
    assert by_row.jobs <= 7


ROWS = st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "x"]))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROWS, min_size=1, max_size=8), st.lists(st.tuples(ROWS, st.integers(-2, 2)), min_size=1, max_size=8))
def test_any_delta_gives_the_multiset_that_arithmetic_gives(
    engine: Engine, tmp_path: Path, held: list[Row], change: list[tuple[Row, int]]
) -> None:
    table = filled(engine, tmp_path / uuid4().hex, PAIRS, held)
    expected = Counter(held)
    for row, weight in change:
        expected[row] += weight
    prepare = merge_rows(engine, table, delta(engine, PAIRS, change)) if min(expected.values()) >= 0 else None
    if prepare is None:
        with pytest.raises(NegativeMultiplicity):
            merge_rows(engine, table, delta(engine, PAIRS, change))
        return
    newer = table if prepare.is_empty else committed(prepare)
    assert contents(engine, newer) == +expected


@pytest.mark.parametrize("alike", [None, 1])
def test_rows_are_found_in_files_that_lack_a_column(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alike: int | None
) -> None:
    """On the driver, and where so many rows look alike that Spark compares them."""
    if alike is not None:
        monkeypatch.setattr(search, "MOST_ALIKE", alike)
    table = filled(engine, tmp_path, KEYED, [(1, "a"), (2, "a"), (2, "a"), (3, "b")])
    add_columns(table, [StructField("n", LongType()), StructField("w", StringType())])
    table = open_snapshot(table.location)
    rows: list[Row] = [(1, "a", 5, "x"), (2, "a", None, "x")]
    table = apply_rows(engine, table, *((row, 1) for row in rows))
    newer = apply_rows(engine, table, ((2, "a", None, None), -1), ((1, "a", 5, "x"), -1))
    left = {(1, "a", None, None): 1, (2, "a", None, None): 1, (3, "b", None, None): 1, (2, "a", None, "x"): 1}
    assert contents(engine, newer) == left == delta_rs_contents(newer.location)


def test_texts_that_are_none_to_python_are_found(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, KEYED, [(1, "a")])
    odd = engine.sql("SELECT 2L AS k, CAST(X'FF' AS STRING) AS v")
    table = committed(append(engine, table, odd))
    newer = committed(merge_rows(engine, table, odd.withColumn(WEIGHT, F.lit(-1)), few=Few(engine)))
    assert contents(engine, newer) == {(1, "a"): 1}


@pytest.mark.parametrize("most", [100, 2])
def test_rows_at_hand_come_as_often_as_their_weight_says(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """On the driver, and by Spark where that would be too many."""
    monkeypatch.setattr(changerows, "LOCAL_ROWS", 0)
    monkeypatch.setattr(rewrite, "MOST_COLLECTED", most)
    table = clustered(engine, tmp_path, files=3, rows_each=4)
    change = delta(engine, KEYED, [((1, "v1"), -1), ((1, "new"), 3), ((50, "new"), 2)])
    newer = committed(merge_rows(engine, table, change, few=Few(engine)))
    expected = {(k, f"v{k}"): 1 for k in range(12) if k != 1} | {(1, "new"): 3, (50, "new"): 2}
    assert contents(engine, newer) == expected == delta_rs_contents(newer.location)


KEYS = shape("k long, part string, v string")


@pytest.mark.parametrize("key", [(), ("k",), ("k", "part")])
def test_a_delta_at_hand_is_applied_as_any_other(engine: Engine, tmp_path: Path, key: tuple[str, ...]) -> None:
    """By whole row, by a key of one column and by one of two: the same contents and the same change rows."""
    held: list[Row] = [(n, f"p{n % 2}", f"v{n}") for n in range(40)]
    table = filled(engine, tmp_path, KEYS, held)
    rows: list[tuple[Row, int]] = [((n, f"p{n % 2}", f"v{n}"), -1) for n in range(0, 40, 3)]
    rows += [((n, f"p{n % 2}", "new"), 1) for n in range(0, 40, 6)] + [((100, None, None), 1)]
    names = [*KEYS.names, WEIGHT]
    given = pa.Table.from_pylist([dict(zip(names, (*row, weight), strict=True)) for row, weight in rows])
    newer = committed(merge_table(engine, table, given, key))
    wanted = Counter(held) + Counter({row: 1 for row, weight in rows if weight > 0})
    wanted.subtract({row: 1 for row, weight in rows if weight < 0})
    assert contents(engine, newer) == +wanted
    assert net_changes(engine, newer, table.version) == dict(rows)


def test_a_key_that_is_not_there_is_a_defect(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, KEYED, [(1, "a")])
    gone = pa.table({"k": [2], "v": ["b"], WEIGHT: [-1]})
    with pytest.raises(NegativeMultiplicity):
        merge_table(engine, table, gone, ["k"])
    assert files_below(table.location) == {file.path for file in table.files}, "what was staged is gone"
