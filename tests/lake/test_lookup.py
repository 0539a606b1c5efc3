"""Rows with some keys, looked up by the driver: the same that Spark finds."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.lake.tables import committed, filled, frame, shape
from trickle.algebra.weights import FILE, ROW
from trickle.engine import Engine
from trickle.lake import bases, few, indexes, lookup
from trickle.lake.evolve import add_columns
from trickle.lake.lookup import Lookups, Wanted
from trickle.lake.rewrite import append
from trickle.lake.scan import pick, scan
from trickle.lake.snapshot import Snapshot, open_snapshot

TABLE = shape("i integer, l long, m decimal(9;2), day date, s string, f double")
ROWS = [
    (1, 10, Decimal("1.00"), date(2024, 1, 1), "a", 0.5),
    (2, 20, Decimal("2.00"), date(2024, 1, 2), "b", 1.5),
    (2, 20, Decimal("2.00"), date(2024, 1, 2), "b", 1.5),
    (None, None, None, None, None, None),
    (-3, 2**40, Decimal("-3.25"), date(1969, 12, 31), "", -0.0),
]
KEYS = {
    "i": pa.chunked_array([[2, 7, None]], pa.int64()),
    "l": pa.chunked_array([[20, 10], [20]], pa.int32()),
    "m": pa.chunked_array([[Decimal("2.00"), Decimal("-3.25"), None]], pa.decimal128(12, 2)),
    "day": pa.chunked_array([[date(2024, 1, 2), date(1969, 12, 31)]], pa.date32()),
    "s": pa.chunked_array([["b", "", None]], pa.string()),
}
"""Keys of a type that need not be the column's."""


@pytest.fixture
def table(engine: Engine, tmp_path: Path) -> Snapshot:
    return filled(engine, tmp_path, TABLE, ROWS)


def found(table: Snapshot, column: str, keys: pa.ChunkedArray, *, nulls: bool, located: bool = False) -> pa.Table:
    key = pick(table.schema, [column])[0]
    wanted = Wanted.of(keys, key, nulls=nulls)
    assert wanted is not None
    rows = Lookups().find(table, table.schema, key, wanted, located=located)
    assert rows is not None
    return rows[0]


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("column", KEYS)
def test_the_rows_that_spark_would_find(engine: Engine, table: Snapshot, column: str, nulls: bool) -> None:
    keys = KEYS[column]
    known = [key for key in keys.to_pylist() if key is not None]
    condition = F.col(column).isin(known)
    if nulls and keys.null_count:
        condition = condition | F.col(column).isNull()
    expected = scan(engine, table, located=True).where(condition).toArrow()
    rows = found(table, column, keys, nulls=nulls, located=True)
    assert expected.num_rows > 0
    assert _sorted(rows) == _sorted(expected)


@pytest.mark.parametrize("column", KEYS)
def test_row_groups_that_cannot_have_a_key_are_left_out(
    engine: Engine, table: Snapshot, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few, "GROUP_ROWS", 2)
    many = [row for row in ROWS for _ in range(5)]
    rows = frame(engine, TABLE, many).coalesce(1)
    snapshot = committed(append(engine, table, rows, few=few.Few(engine)))
    expected = found(snapshot, column, KEYS[column], nulls=True, located=True)
    naive = [n for n, row in enumerate(many) if row[TABLE.names.index(column)] in KEYS[column].to_pylist()]
    new = [row[ROW] for row in expected.to_pylist() if row[FILE] not in {file.path for file in table.files}]
    assert naive
    assert sorted(new) == naive


def test_a_column_that_a_file_lacks_is_null_in_it(engine: Engine, table: Snapshot) -> None:
    add_columns(table, shape("extra long"))
    wider = open_snapshot(table.location)
    keys = pa.chunked_array([[5, None]], pa.int64())
    assert found(wider, "extra", keys, nulls=False).num_rows == 0
    everything = found(wider, "extra", keys, nulls=True)
    assert everything.num_rows == len(ROWS)
    assert everything.column("extra").null_count == len(ROWS)


def test_keys_that_are_not_compared_as_spark_does_are_left_to_spark(table: Snapshot) -> None:
    floats = pa.chunked_array([[0.5]], pa.float64())
    assert Wanted.of(floats, pick(table.schema, ["f"])[0], nulls=False) is None
    assert Wanted.of(floats, pick(table.schema, ["i"])[0], nulls=False) is None
    # Beyond the column's type: nothing can equal it, and Spark compares as wide as it must.
    assert Wanted.of(pa.chunked_array([[2**40]], pa.int64()), pick(table.schema, ["i"])[0], nulls=False) is None


def test_too_much_is_left_to_spark(table: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    key = pick(table.schema, ["i"])[0]
    wanted = Wanted.of(KEYS["i"], key, nulls=False)
    assert wanted is not None
    assert Lookups().find(table, table.schema, key, wanted) is not None
    for bound, least in (("MOST_FOUND", 1), ("MOST_BYTES", 1), ("MOST_READ", len(ROWS) - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(lookup, bound, least)
            assert Lookups().find(table, table.schema, key, wanted) is None


def test_a_file_is_looked_through_once_for_the_same_keys(table: Snapshot) -> None:
    key = pick(table.schema, ["l"])[0]
    lookups = Lookups()
    for keys in (KEYS["l"], pa.chunked_array([[10, 20]], pa.int64())):
        wanted = Wanted.of(keys, key, nulls=False)
        assert wanted is not None
        lookups.find(table, table.schema, key, wanted)
    assert (lookups.files, lookups.rows) == (len(table.files), len(ROWS))
    other = Wanted.of(pa.chunked_array([[10]], pa.int64()), key, nulls=False)
    assert other is not None
    lookups.find(table, table.schema, key, other)
    assert lookups.files == 2 * len(table.files)


@pytest.mark.parametrize("located", [False, True])
def test_where_nothing_is_wanted_nothing_is_read(
    table: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, located: bool
) -> None:
    monkeypatch.setattr(indexes, "LEAST_ROWS", 0)
    monkeypatch.setattr(bases, "LEAST_ROWS", 0)
    monkeypatch.setattr(bases, "LOOKS", 1)
    folder = tmp_path / "indexes"
    key = pick(table.schema, ["i"])[0]
    wanted = Wanted.of(pa.chunked_array([[None, None]], pa.int64()), key, nulls=False)
    some = Wanted.of(KEYS["i"], key, nulls=False)
    assert wanted is not None
    assert some is not None
    expected = Lookups().find(table, table.schema, key, some, located=located)
    assert expected is not None
    for _ in range(4):
        lookups = Lookups(indexes.Indexes(folder, 1 << 20))
        found = lookups.find(table, table.schema, key, wanted, located=located)
        assert found is not None
        assert (lookups.files, lookups.rows, lookups.rows_indexed, found[0].num_rows) == (0, 0, 0, 0)
        assert (found[0].schema, found[1]) == (expected[0].schema, expected[1])
    assert not folder.exists()


def _sorted(rows: pa.Table) -> list[tuple[object, ...]]:
    columns = [*TABLE.names, FILE, ROW]
    return sorted((tuple(row[c] for c in columns) for row in rows.to_pylist()), key=str)
