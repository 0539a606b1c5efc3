"""Rows found by an index: those that looking through the file finds, and nothing is lost when the index is."""

from __future__ import annotations

import os
import shutil
from datetime import date
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.tables import filled, shape
from trickle.engine import Engine
from trickle.lake import indexes as module
from trickle.lake.indexes import Indexes, Place, _positions, narrow
from trickle.lake.lookup import Lookups, Wanted
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot

TABLE = shape("k long, day date, v string, m decimal(9;2)")
ROWS = [(n * 7 % 20 if n % 9 else None, None, f"v{n}", None) for n in range(60)]
KEYS = pa.chunked_array([[3, 14, 99, None]], pa.int64())


@pytest.fixture(autouse=True)
def _small_files_have_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 0)


@pytest.fixture
def table(engine: Engine, tmp_path: Path) -> Snapshot:
    return filled(engine, tmp_path / "table", TABLE, ROWS)


@pytest.fixture
def indexes(tmp_path: Path) -> Indexes:
    return Indexes(tmp_path / "indexes", 1 << 20)


def looked_up(table: Snapshot, indexes: Indexes | None, *, nulls: bool = True) -> tuple[Lookups, list[str]]:
    """What a refresh finds, in order."""
    key = pick(table.schema, ["k"])[0]
    wanted = Wanted.of(KEYS, key, nulls=nulls)
    assert wanted is not None
    lookups = Lookups(indexes)
    found = lookups.find(table, table.schema, key, wanted, located=True)
    assert found is not None
    return lookups, sorted(map(str, found[0].to_pylist()))


@given(
    st.lists(st.integers(0, 9)).map(sorted),
    st.integers(0, 3),
    st.sets(st.integers(-1, 12)).map(sorted),
    st.booleans(),
)
def test_positions_are_those_of_the_values(keys: list[int], nulls: int, values: list[int], with_null: bool) -> None:
    every = [*keys, *[None] * nulls]
    wanted = [*values, *[None] * with_null]
    found = _positions(pa.array(every, pa.int64()), pa.array(wanted, pa.int64())).to_pylist()
    assert found == [place for place, key in enumerate(every) if key in wanted]


@pytest.mark.parametrize("nulls", [False, True])
def test_the_third_refresh_makes_an_index_and_others_use_it(table: Snapshot, indexes: Indexes, nulls: bool) -> None:
    _, expected = looked_up(table, None, nulls=nulls)
    runs = [looked_up(table, indexes, nulls=nulls) for _ in range(4)]
    assert expected
    assert [found for _, found in runs] == [expected] * 4
    assert [lookups.rows_indexed for lookups, _ in runs] == [0, 0, len(ROWS), 0]
    assert [lookups.rows for lookups, _ in runs] == [len(ROWS), len(ROWS), len(expected), len(expected)]


def test_one_refresh_looks_often_without_making_an_index(table: Snapshot, indexes: Indexes) -> None:
    key = pick(table.schema, ["k"])[0]
    lookups = Lookups(indexes)
    for keys in (KEYS, pa.chunked_array([[5]], pa.int64()), pa.chunked_array([[6]], pa.int64())):
        wanted = Wanted.of(keys, key, nulls=False)
        assert wanted is not None
        lookups.find(table, table.schema, key, wanted)
    assert lookups.rows_indexed == 0


def test_another_column_joins_the_index(table: Snapshot, indexes: Indexes) -> None:
    for _ in range(3):
        looked_up(table, indexes)
    place = Place(table.location, table.files[0], pick(table.schema, ["k"])[0])
    assert not indexes.missing_bytes(place, table.schema)
    wider = shape("k long, v binary")
    assert indexes.missing_bytes(place, wider) == 40 * len(ROWS), "of another type it is another column"


def test_a_lost_or_broken_index_is_made_again(table: Snapshot, tmp_path: Path) -> None:
    _, expected = looked_up(table, None)
    folder = tmp_path / "indexes"
    for spoil in ("remove", "truncate", "one column"):
        for _ in range(3):
            looked_up(table, Indexes(folder, 1 << 20))
        files = sorted(folder.rglob("*"))
        if spoil == "remove":
            shutil.rmtree(folder)
        elif spoil == "truncate":
            for file in files:
                if file.is_file():
                    file.write_bytes(file.read_bytes()[:10])
        else:
            next(file for file in files if file.is_file() and file.name.startswith("c")).unlink()
        for _ in range(4):
            lookups, found = looked_up(table, Indexes(folder, 1 << 20))
            assert found == expected, spoil
        assert lookups.rows == len(expected), f"{spoil}: searched again"


def test_there_is_no_index_without_room(table: Snapshot, tmp_path: Path) -> None:
    _, expected = looked_up(table, None)
    small = Indexes(tmp_path / "indexes", 100)
    for _ in range(4):
        lookups, found = looked_up(table, small)
        assert found == expected
        assert lookups.rows_indexed == 0


def test_what_was_not_used_for_long_makes_room(table: Snapshot, tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    indexes = Indexes(folder, 20_000)
    old, recent = folder / "old", folder / "recent"
    for place in (old, recent):
        place.mkdir(parents=True)
        (place / "keys").write_bytes(b"x" * 8_000)
    os.utime(old, (0, 0))
    looked_up(table, indexes)
    looked_up(table, indexes)
    lookups, _ = looked_up(table, indexes)
    assert lookups.rows_indexed == len(ROWS)
    assert not old.exists()
    assert recent.exists()


def test_a_folder_that_cannot_be_written_is_done_without(table: Snapshot, tmp_path: Path) -> None:
    _, expected = looked_up(table, None)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for _ in range(4):
        assert looked_up(table, Indexes(blocked / "indexes", 1 << 20))[1] == expected


def _decimals(kind: pa.DataType, *values: str | None) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], kind)


@pytest.mark.parametrize(
    "values, kind",
    [
        (pa.array([-128, None, 127], pa.int64()), pa.int8()),
        (pa.array([-129, 127], pa.int64()), pa.int16()),
        (pa.array([0, 2**15], pa.int32()), pa.int32()),
        (pa.array([-(2**31), 2**31 - 1], pa.int64()), pa.int32()),
        (pa.array([0, 2**31], pa.int64()), pa.int64()),
        (pa.array([-(2**31) - 1, None], pa.int64()), pa.int64()),
        (pa.array([0, 200], pa.uint64()), pa.int16()),
        (pa.array([None, None], pa.int64()), pa.int8()),
        (pa.array([], pa.int64()), pa.int8()),
        (_decimals(pa.decimal128(20, 2), "-9999999.99", None), pa.decimal32(9, 2)),
        (_decimals(pa.decimal128(20, 2), "-10000000.00", "1.00"), pa.decimal64(18, 2)),
        (_decimals(pa.decimal128(38, 2), "1.00", "-10000000000000000.00"), pa.decimal128(38, 2)),
        (_decimals(pa.decimal128(15, 2), "1.00", "42949673.01"), pa.decimal64(18, 2)),
        (_decimals(pa.decimal128(38, 0), str(2**64 + 7)), pa.decimal128(38, 0)),
        (_decimals(pa.decimal128(5, 2), "-1.25"), pa.decimal32(9, 2)),
        (_decimals(pa.decimal128(38, 12), "0.000000000001"), pa.decimal64(18, 12)),
        (_decimals(pa.decimal128(38, 20), "0.00000000000000000001"), pa.decimal128(38, 20)),
        (pa.array(["a"]), pa.string()),
        (pa.array([date(2024, 1, 1)]), pa.date32()),
    ],
)
def test_numbers_take_as_few_bytes_as_they_need(values: pa.Array, kind: pa.DataType) -> None:
    stored = narrow(values)
    assert stored.type == kind
    assert stored.cast(values.type).equals(values)


@given(st.lists(st.integers(0, 37).flatmap(lambda digits: st.integers(-(10**digits), 10**digits)), max_size=5))
def test_decimals_stay_as_they_are(numbers: list[int]) -> None:
    values = pa.array([Decimal(number).scaleb(-3, Context(prec=40)) for number in numbers], pa.decimal128(38, 3))
    assert narrow(values).cast(values.type).equals(values)


@given(
    st.lists(st.integers(-300, 300)).map(sorted),
    st.integers(0, 2),
    st.sets(st.one_of(st.integers(-305, 305), st.sampled_from([-(2**62), -(2**31), 2**31, 2**62]))).map(sorted),
    st.booleans(),
)
def test_wanted_values_may_lie_beyond_what_is_stored(
    keys: list[int], nulls: int, values: list[int], with_null: bool
) -> None:
    every = [*keys, *[None] * nulls]
    wanted = [*values, *[None] * with_null]
    found = _positions(narrow(pa.array(every, pa.int64())), pa.array(wanted, pa.int64())).to_pylist()
    assert found == [place for place, key in enumerate(every) if key in wanted]


NUMBERS = shape("k long, i integer, l long, small decimal(7;2), m decimal(18;4), wide decimal(38;3)")


@pytest.mark.parametrize("step", [1, 1_000, 10**6, 10**12])
def test_rows_are_found_with_the_types_of_their_columns(
    engine: Engine, tmp_path: Path, indexes: Indexes, step: int
) -> None:
    rows = [
        (
            (n - 10) * step if n % 7 else None,
            -n,
            n * step if n % 3 else None,
            Decimal(-n) / 4 if n % 5 else None,
            Decimal(n * step) / 16,
            Decimal(-n * step) * 10**12,
        )
        for n in range(20)
    ]
    table = filled(engine, tmp_path / "numbers", NUMBERS, rows)
    key = pick(table.schema, ["k"])[0]
    keys = [-8 * step, -8 * step + 1, 0, step, 9 * step, -(2**62), 2**62, None]
    wanted = Wanted.of(pa.chunked_array([keys], pa.int64()), key, nulls=True)
    assert wanted is not None
    plain = Lookups().find(table, table.schema, key, wanted, located=True)
    assert plain is not None
    assert plain[0].num_rows == len([row for row in rows if row[0] in keys]) > 5
    for _ in range(4):
        lookups = Lookups(indexes)
        found = lookups.find(table, table.schema, key, wanted, located=True)
        assert found is not None
        assert found[0].schema == plain[0].schema
        assert sorted(map(str, found[0].to_pylist())) == sorted(map(str, plain[0].to_pylist()))
    assert lookups.rows == plain[0].num_rows, "by the index"


def test_values_that_all_lie_beyond_are_not_found(table: Snapshot, indexes: Indexes) -> None:
    key = pick(table.schema, ["k"])[0]
    wanted = Wanted.of(pa.chunked_array([[-(2**40), 2**40]], pa.int64()), key, nulls=False)
    assert wanted is not None
    for _ in range(4):
        found = Lookups(indexes).find(table, table.schema, key, wanted)
        assert found is not None
        assert found[0].num_rows == 0
