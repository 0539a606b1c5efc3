"""Deltas applied by key on the driver: contents, change, and which files are touched; no Spark takes part."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

from tests.lake.tables import committed, delta_rs_contents, files_below, shape
from trickle.algebra.weights import WEIGHT
from trickle.errors import CorruptTable, NegativeMultiplicity
from trickle.lake import few, keyed
from trickle.lake.create import create
from trickle.lake.keyed import merge_by_key
from trickle.lake.location import Location
from trickle.lake.prepared import Prepared, note
from trickle.lake.snapshot import Snapshot
from trickle.lake.stage import stage_few

PAIRED = shape("k long, part string, v string")
Row = tuple[Any, ...]


def rows_of(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def arrow(schema: StructType, rows: Sequence[Row], *beside: str) -> pa.Table:
    names = [*schema.names, *beside]
    kinds = [pa.int64() if f.dataType == LongType() else pa.string() for f in schema.fields]
    kinds += [pa.int64()] * len(beside)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)


def made(place: Path, schema: StructType, *files: Sequence[Row]) -> Snapshot:
    """A table with these files."""
    table = create(Location.of(place), schema)
    staged = stage_few([arrow(schema, rows) for rows in files], table)
    if not staged.files:
        return table
    return committed(Prepared(table.location, 0, staged.files, info=note("test", staged.rows, 0)))


def merged(table: Snapshot, rows: Sequence[Row], key: Sequence[str], *, whole: bool = True) -> Prepared:
    found = merge_by_key(table, arrow(table.schema, rows, WEIGHT), key, whole=whole)
    assert found is not None
    return found


def change_of(prepared: Prepared) -> Counter[Row]:
    """The change rows, as a reader would take them."""
    assert prepared.changes is not None
    found: Counter[Row] = Counter()
    for path, _ in prepared.changes.files:
        for *row, weight in rows_of(pq.read_table(Path(prepared.location.uri, path))):
            found[tuple(row)] += weight
    return found


def test_rows_are_replaced_where_they_lie_and_new_ones_come_beside(tmp_path: Path) -> None:
    files = [[(n, "p", "old") for n in range(start, start + 10)] for start in (0, 10, 20)]
    table = made(tmp_path / "t", PAIRED, *files)
    delta = [(3, "p", "old", -1), (3, "p", "new", 1), (5, "p", "old", -1), (40, "p", "x", 1), (33, "p", "x", 1)]
    prepared = merged(table, delta, ["k"])
    assert [file.path for file in prepared.removes] == [table.files[0].path], "the others are not touched"
    added = sorted((file.minimum["k"], file.maximum["k"], file.rows) for file in prepared.adds)
    assert added == [(0, 9, 9), (33, 40, 2)]
    assert change_of(prepared) == {row[:-1]: row[-1] for row in delta}
    wanted = {(n, "p", "old"): 1 for n in range(30) if n not in (3, 5)}
    newer = committed(prepared)
    assert delta_rs_contents(newer.location) == {**wanted, (3, "p", "new"): 1, (40, "p", "x"): 1, (33, "p", "x"): 1}


def test_by_the_key_alone_the_change_tells_the_true_rows(tmp_path: Path) -> None:
    table = made(tmp_path / "t", PAIRED, [(1, "a", "one"), (1, "b", "two")], [(2, "a", "three")])
    delta = [(1, "b", None, -1), (2, "a", None, -1), (2, "a", "new", 1)]
    prepared = merged(table, delta, ["k", "part"], whole=False)
    assert change_of(prepared) == {(1, "b", "two"): -1, (2, "a", "three"): -1, (2, "a", "new"): 1}
    assert (prepared.inserted, prepared.deleted) == (1, 2)
    assert delta_rs_contents(committed(prepared).location) == {(1, "a", "one"): 1, (2, "a", "new"): 1}


def test_new_rows_alone_are_files_in_the_order_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed.in_order, "__defaults__", (2,))
    table = made(tmp_path / "t", PAIRED, [(1, "a", "x")])
    prepared = merged(table, [(n, "a", "x", 1) for n in (5, 2, 9, 4)], ["k"])
    assert prepared.removes == ()
    assert prepared.changes is None, "the files are the change"
    assert sorted((file.minimum["k"], file.maximum["k"]) for file in prepared.adds) == [(2, 4), (5, 9)]


def test_a_file_whose_rows_all_go_is_gone(tmp_path: Path) -> None:
    table = made(tmp_path / "t", PAIRED, [(1, "a", "x")], [(2, "a", "x")])
    prepared = merged(table, [(1, "a", "x", -1)], ["k"])
    assert (len(prepared.removes), prepared.adds) == (1, ())
    assert delta_rs_contents(committed(prepared).location) == {(2, "a", "x"): 1}


def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t", PAIRED, [(1, "a", "x"), (1, "b", "y"), (2, "a", "z")])
    before = files_below(table.location)
    for rows in ([(9, "a", "x", -1)], [(2, "a", "z", -1), (2, "a", "z", -1)]):
        with pytest.raises(NegativeMultiplicity, match="does not hold"):
            merged(table, rows, ["k"])
    with pytest.raises(CorruptTable, match="not unique"):
        merged(table, [(1, "a", "x", -1)], ["k"])
    assert files_below(table.location) == before


@pytest.mark.parametrize("field", [StructField("v", ArrayType(StringType())), StructField("k", DoubleType())])
def test_what_arrow_does_otherwise_is_left_to_spark(tmp_path: Path, field: StructField) -> None:
    schema = StructType([field if field.name == "k" else StructField("k", LongType()), StructField("w", StringType())])
    if field.name == "v":
        schema = schema.add(field)
    table = create(Location.of(tmp_path / "t"), schema)
    delta = pa.table({name: pa.array([], pa.null()) for name in schema.names} | {WEIGHT: pa.array([], pa.int64())})
    assert merge_by_key(table, delta, ["k"], whole=True) is None


def test_files_that_are_too_large_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", PAIRED, [(1, "a", "x")])
    delta = arrow(PAIRED, [(1, "a", "x", -1)], WEIGHT)
    for limit in ("MOST_ANEW", "MOST_FILE_ANEW"):
        with monkeypatch.context() as patch:
            patch.setattr(few, limit, 10)
            assert merge_by_key(table, delta, ["k"], whole=True) is None


KEYS = st.tuples(st.integers(0, 5), st.sampled_from("ab"))
VALUES = st.sampled_from(["x", "y", None])


@settings(max_examples=60)
@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=3), st.dictionaries(KEYS, VALUES), st.sets(KEYS), st.booleans())
def test_any_delta_gives_the_table_that_it_says(
    parts: list[dict[tuple[int, str], Any]], come: dict[tuple[int, str], Any], gone: set[tuple[int, str]], whole: bool
) -> None:
    there: dict[tuple[int, str], Any] = {}
    files = []
    for part in parts:
        new = {key: value for key, value in part.items() if key not in there}
        there |= new
        files.append(rows_with(new))
    removed = {key: value for key, value in there.items() if key in gone or key in come}
    delta = [(*key, value if whole else None, -1) for key, value in removed.items()]
    delta += [(*row, 1) for row in rows_with(come)]
    with tempfile.TemporaryDirectory() as folder:
        table = made(Path(folder, "t"), PAIRED, *files)
        prepared = merged(table, delta, ["k", "part"], whole=whole)
        left = {key: value for key, value in there.items() if key not in removed} | come
        assert prepared.is_empty == (not delta)
        if delta:
            committed(prepared)
        assert delta_rs_contents(table.location) == Counter(rows_with(left))
        if removed:
            wanted = Counter(rows_with(come))
            wanted.subtract(rows_with(removed))
            assert {r: n for r, n in change_of(prepared).items() if n} == {r: n for r, n in wanted.items() if n}


def rows_with(held: Mapping[tuple[int, str], Any]) -> list[Row]:
    return [(*key, value) for key, value in held.items()]
