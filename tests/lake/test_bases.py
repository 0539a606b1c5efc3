"""Rows found from a base: those that looking through the version finds, whatever changed between the two."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructField, StructType

from tests.lake.tables import clustered, committed, filled, frame, shape
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.engine import Engine
from trickle.lake import bases, indexes
from trickle.lake.commit import TableCommit, commit
from trickle.lake.indexes import Indexes, table_name
from trickle.lake.local import local_changes
from trickle.lake.location import Location
from trickle.lake.lookup import Lookups, Wanted
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import append, replace_rows
from trickle.lake.scan import pick, scan
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.staged import next_snapshot

TABLE = shape("k long, v string, m decimal(9;2)")
ROWS = [(n % 7 if n % 9 else None, f"v{n % 5}", None) for n in range(40)]
KEYS = pa.chunked_array([[1, 3, 99, None]], pa.int64())


@pytest.fixture(autouse=True)
def _small_tables_have_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "LEAST_ROWS", 0)
    monkeypatch.setattr(bases, "MOST_SHARE", 1.0)
    monkeypatch.setattr(indexes, "LEAST_ROWS", 0)


@pytest.fixture
def table(engine: Engine, tmp_path: Path) -> Snapshot:
    return filled(engine, tmp_path / "table", TABLE, ROWS)


@pytest.fixture
def known(tmp_path: Path) -> Indexes:
    return Indexes(tmp_path / "indexes", 1 << 20)


def found_in(table: Snapshot, known: Indexes | None, keys: pa.ChunkedArray = KEYS) -> tuple[Lookups, Counter[str]]:
    """What a refresh finds, each row as often as it is there."""
    key = pick(table.schema, ["k"])[0]
    wanted = Wanted.of(keys, key, nulls=True)
    assert wanted is not None
    lookups = Lookups(known)
    found = lookups.find(table, table.schema, key, wanted)
    assert found is not None
    return lookups, Counter(map(str, found[0].to_pylist()))


def with_base(table: Snapshot, known: Indexes) -> None:
    for _ in range(bases.LOOKS):
        found_in(table, known)
    assert base_of(table, known) == table.version


def base_of(table: Snapshot, known: Indexes) -> int | None:
    note = known.bases.folder / table_name(table.location, pick(table.schema, ["k"])[0]) / "base"
    return int(note.read_text()) if note.exists() else None


def changed(engine: Engine, table: Snapshot, going: list[int], coming: list[tuple[int | None, str]]) -> Snapshot:
    """The table without some rows, by their number, and with others."""
    change = prepared(engine, table, going, coming)
    return table if change.is_empty else committed(change)


def prepared(engine: Engine, table: Snapshot, going: list[int], coming: list[tuple[int | None, str]]) -> Prepared:
    there = scan(engine, table, located=True).toArrow().sort_by([(FILE, "ascending"), (ROW, "ascending")])
    gone = there.take(pa.array(going, pa.int64())).append_column(WEIGHT, pa.array([-1] * len(going), pa.int64()))
    come = pa.table(
        {
            "k": pa.array([key for key, _ in coming], pa.int64()),
            "v": pa.array([value for _, value in coming], pa.string()),
            "m": pa.nulls(len(coming), pa.decimal128(9, 2)),
            FILE: pa.nulls(len(coming), pa.string()),
            ROW: pa.nulls(len(coming), pa.int64()),
            WEIGHT: pa.array([1] * len(coming), pa.int64()),
        }
    )
    rows = pa.concat_tables([gone.select(come.column_names).cast(come.schema), come])
    return replace_rows(engine, table, engine.from_arrow(rows))


_changes = st.lists(
    st.tuples(
        st.sets(st.integers(0, 29), max_size=6),
        st.lists(st.tuples(st.sampled_from([None, 1, 2, 3, 99]), st.sampled_from(["v1", "v2"])), max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_changes, base=st.integers(0, 4))
def test_every_version_is_found_from_any_base(
    engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[set[int], list[tuple[int | None, str]]]],
    base: int,
) -> None:
    folder = tmp_path_factory.mktemp("bases")
    known = Indexes(folder / "indexes", 1 << 20)
    versions = [filled(engine, folder / "table", TABLE, ROWS)]
    for going, coming in steps:
        rows = sum(file.rows or 0 for file in versions[-1].files)
        versions.append(changed(engine, versions[-1], [n for n in going if n < rows], coming))
    with_base(versions[min(base, len(steps))], known)
    for again in (1, 2):
        for version in versions:
            assert found_in(version, known)[1] == found_in(version, None)[1], (again, version.version)


def test_files_that_were_rewritten_are_not_looked_at(engine: Engine, table: Snapshot, known: Indexes) -> None:
    with_base(table, known)
    later = changed(engine, table, [1, 5], [(3, "new")])
    assert not {file.path for file in later.files} & {file.path for file in table.files}
    shutil.rmtree(Path(later.location.uri, Path(later.files[0].path).parent))
    lookups, found = found_in(later, known)
    assert found["{'k': 3, 'v': 'new', 'm': None}"] == 1
    assert lookups.rows_indexed == 0


def test_a_base_is_given_up_when_much_has_changed(
    engine: Engine, table: Snapshot, known: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_base(table, known)
    monkeypatch.setattr(bases, "MOST_SHARE", 0.1)
    little = changed(engine, table, [0], [(3, "new")])
    assert found_in(little, known)[1] == found_in(little, None)[1]
    assert base_of(table, known) == table.version
    much = changed(engine, little, [1, 2], [(3, "new")] * 2)
    lookups, found = found_in(much, known)
    assert found == found_in(much, None)[1]
    assert base_of(table, known) is None
    assert lookups.rows_indexed == 0
    with_base(much, known)
    assert found_in(table, known)[1] == found_in(table, None)[1], "before the base, and too far"
    assert base_of(table, known) == much.version, "who lags behind does not move it"
    last = changed(engine, much, [1], [])
    monkeypatch.setattr(bases, "MOST_VERSIONS", 0)
    assert found_in(last, known)[1] == found_in(last, None)[1]
    assert base_of(table, known) is None


def test_what_is_staged_has_no_base(engine: Engine, table: Snapshot, known: Indexes) -> None:
    """Another commit may have taken the number of its version meanwhile."""
    with_base(table, known)
    staged = next_snapshot(table, prepared(engine, table, [1], [(1, "staged")]))
    other = changed(engine, table, [5], [(3, "other")])
    assert staged.version == other.version
    for version in (staged, other):
        assert found_in(version, known)[1] == found_in(version, None)[1]


def test_a_base_without_its_files_is_forgotten(engine: Engine, table: Snapshot, known: Indexes) -> None:
    with_base(table, known)
    later = changed(engine, table, [1], [(1, "new")])
    for file in table.files:
        Path(table.location.uri, file.path).unlink()
    assert found_in(later, known)[1] == found_in(later, None)[1], "what was asked for before is in the index"
    shutil.rmtree(known.bases.folder)
    note = known.bases.folder / table_name(table.location, pick(table.schema, ["k"])[0]) / "base"
    note.parent.mkdir(parents=True)
    note.write_text(str(table.version))
    again = Indexes(known.bases.folder, 1 << 20)
    assert found_in(later, again)[1] == found_in(later, None)[1]
    assert base_of(later, again) is None


@pytest.mark.parametrize("note", ["", "seven", "-3", "999"])
def test_a_broken_note_is_forgotten(engine: Engine, table: Snapshot, known: Indexes, note: str) -> None:
    with_base(table, known)
    later = changed(engine, table, [1], [(1, "new")])
    (known.bases.folder / table_name(table.location, pick(table.schema, ["k"])[0]) / "base").write_text(note)
    expected = found_in(later, None)[1]
    assert [found_in(later, known)[1] for _ in range(5)] == [expected] * 5
    assert base_of(later, known) == later.version


def test_changes_that_are_not_told_end_a_base(engine: Engine, table: Snapshot, tmp_path: Path) -> None:
    known = Indexes(tmp_path / "indexes", 1 << 20)
    with_base(table, known)
    later = committed(append(engine, table, engine.from_arrow(pa.table({"k": [1], "v": ["new"], "m": [None]}), TABLE)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "local_changes", lambda *_: None)
        for _ in range(bases.LOOKS + 1):
            assert found_in(later, known)[1] == found_in(later, None)[1]
            assert base_of(table, known) is None, "nor is another one made"
    with_base(later, known)


def test_a_version_without_a_change_leaves_a_base(engine: Engine, tmp_path: Path, known: Indexes) -> None:
    shaped = StructType([replace_nullable(field) for field in TABLE.fields])
    table = filled(engine, tmp_path / "required", shaped, [(n % 7, "v", None) for n in range(20)])
    with_base(table, known)
    later = changed(engine, table, [1], [(3, "new")])
    commit(TableCommit(later.location, later.version))
    empty = open_snapshot(later.location)
    assert empty.version == later.version + 1
    for version in (later, empty):
        assert found_in(version, known)[1] == found_in(version, None)[1]
    assert base_of(table, known) == table.version


def replace_nullable(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, nullable=field.name != "k")


def test_a_base_that_does_not_fit_is_forgotten(engine: Engine, table: Snapshot, known: Indexes) -> None:
    with_base(table, known)
    later = changed(engine, table, [1], [(3, "new")])
    false = pa.table({"k": [3], "v": ["never was"], "m": pa.nulls(1, pa.decimal128(9, 2)), WEIGHT: [-1]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "local_changes", lambda *_: false)
        assert found_in(later, known)[1] == found_in(later, None)[1]
    assert base_of(table, known) is None


def test_what_is_not_kept_in_memory_is_read_again(engine: Engine, table: Snapshot, known: Indexes) -> None:
    with_base(table, known)
    later = changed(engine, table, [1, 2, 3], [(1, "new")])
    last = changed(engine, later, [1], [(3, "new")])
    narrow = replace(last, schema=StructType(TABLE.fields[:2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "_size", lambda _: bases.MOST_BYTES + 1)
        for version in (later, last, narrow, table, later):
            assert found_in(version, known)[1] == found_in(version, None)[1]
            assert not known.bases._kept


def test_a_base_that_lasted_moves_on_when_much_has_changed(
    engine: Engine, table: Snapshot, known: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_base(table, known)
    later = table
    for turn in range(bases.LOOKS):
        later = changed(engine, later, [turn], [(3, "new")])
    monkeypatch.setattr(bases, "MOST_SHARE", 0.1)
    lookups, found = found_in(later, known)
    assert found == found_in(later, None)[1]
    assert base_of(table, known) == later.version == table.version + bases.LOOKS
    assert lookups.rows_indexed == sum(file.rows or 0 for file in later.files), "its files are indexed at once"
    last = changed(engine, later, [1], [(1, "last")])
    for version in (last, later, table):
        assert found_in(version, known)[1] == found_in(version, None)[1]
    assert base_of(table, known) == later.version


def test_a_base_does_not_move_to_a_version_whose_change_is_not_told(
    engine: Engine, table: Snapshot, known: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_base(table, known)
    later = table
    for turn in range(bases.LOOKS):
        later = changed(engine, later, [turn], [(3, "new")])
    monkeypatch.setattr(bases, "local_changes", lambda *_: None)
    assert found_in(later, known)[1] == found_in(later, None)[1]
    assert base_of(table, known) is None


def test_changes_are_read_once_for_all_columns_that_were_asked_for(
    engine: Engine, table: Snapshot, known: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_base(table, known)
    later = changed(engine, table, [1, 2, 3], [(1, "new"), (None, "new")])
    read: list[tuple[str, ...]] = []

    def noted(location: Location, old: int, new: int, columns: Sequence[str]) -> pa.Table | None:
        read.append(tuple(columns))
        return local_changes(location, old, new, columns)

    monkeypatch.setattr(bases, "local_changes", noted)
    first, second = (
        replace(later, schema=StructType([TABLE[name] for name in names])) for names in (("k", "m"), ("v", "k"))
    )
    for version in (first, second, later, first, second):
        assert found_in(version, known)[1] == found_in(version, None)[1]
    assert read == [("k", "m"), ("k", "m", "v")]
    (kept,) = known.bases._kept.values()
    assert (kept.columns, list(kept.versions)) == (("k", "m", "v"), [later.version])


def test_a_column_that_is_gone_is_not_asked_for_again(
    engine: Engine, table: Snapshot, known: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_base(table, known)
    later = changed(engine, table, [1, 2], [(1, "new")])
    found_in(later, known)

    def without(location: Location, old: int, new: int, columns: Sequence[str]) -> pa.Table | None:
        return None if "m" in columns else local_changes(location, old, new, columns)

    monkeypatch.setattr(bases, "local_changes", without)
    last = replace(changed(engine, later, [1], [(3, "new")]), schema=StructType(TABLE.fields[:2]))
    for _ in range(bases.LOOKS):
        assert found_in(last, known)[1] == found_in(last, None)[1]
    lookups, _ = found_in(last, known)
    assert base_of(table, known) == last.version
    assert not lookups.rows_indexed


AMOUNTS = shape("k long, a decimal(9;2), b decimal(18;4), c decimal(30;2), day date")
AMOUNT = (Decimal("-1234567.89"), Decimal("-12345678901234.5678"), Decimal("-1234567890123456789012345678.90"))


def test_changes_take_few_bytes_and_come_back_as_they_were(engine: Engine, tmp_path: Path, known: Indexes) -> None:
    rows = [(n % 5, *AMOUNT, date(2024, 1, 1 + n % 9)) for n in range(20)]
    table = filled(engine, tmp_path / "amounts", AMOUNTS, [*rows, (None, None, None, None, None)])
    with_base(table, known)
    there = scan(engine, table, located=True).where("k = 1 OR k IS NULL").toArrow()
    gone = there.append_column(WEIGHT, pa.array([-1] * there.num_rows, pa.int64()))
    come = [(1, None, *AMOUNT[1:], None), (3, *(-value for value in AMOUNT), None)]
    new = frame(engine, AMOUNTS, come).toArrow()
    new = new.append_column(FILE, pa.nulls(2, pa.string())).append_column(ROW, pa.nulls(2, pa.int64()))
    new = new.append_column(WEIGHT, pa.array([1, 1], pa.int64()))
    plain = pa.schema([(field.name, field.type) for field in gone.schema])
    both = pa.concat_tables([gone.cast(plain), new.cast(plain)])
    later = committed(replace_rows(engine, table, engine.from_arrow(both)))

    name = table_name(later.location, pick(later.schema, ["k"])[0])
    near = known.bases.near(name, later, AMOUNTS.names)
    assert near is not None
    assert near.since is not None
    kinds = [pa.int64(), pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(30, 2), pa.date32(), pa.int8()]
    assert near.since.schema == pa.schema(list(zip([*AMOUNTS.names, WEIGHT], kinds, strict=True)))
    exact = local_changes_of(table, later)
    shape_of = exact.drop_columns([WEIGHT]).schema
    assert Counter(map(str, bases.unpacked(near.since, shape_of).to_pylist())) == Counter(map(str, exact.to_pylist()))
    assert bases.unpacked(near.since, shape_of).schema.types == exact.schema.types

    key = pick(later.schema, ["k"])[0]
    wanted = Wanted.of(KEYS, key, nulls=True)
    assert wanted is not None
    by_base, directly = (Lookups(one).find(later, later.schema, key, wanted) for one in (known, None))
    assert by_base is not None
    assert directly is not None
    assert by_base[0].schema.types == directly[0].schema.types
    assert Counter(map(str, by_base[0].to_pylist())) == Counter(map(str, directly[0].to_pylist()))
    assert base_of(table, known) == table.version


def local_changes_of(old: Snapshot, new: Snapshot) -> pa.Table:
    found = local_changes(old.location, old.version, new.version, new.schema.names)
    assert found is not None
    assert found.num_rows
    return found


@pytest.mark.parametrize("share, indexed", [(1, 0), (2, 20), (4, 40)])
def test_keys_in_few_files_of_a_base_do_not_index_them_at_once(
    engine: Engine, tmp_path: Path, known: Indexes, share: int, indexed: int
) -> None:
    table = clustered(engine, tmp_path / "clustered", files=4, rows_each=10)
    key = pick(table.schema, ["k"])[0]
    wanted = Wanted.of(pa.chunked_array([range(40)], pa.int64()), key, nulls=False)
    assert wanted is not None
    # The first two refreshes look through other files: none of the last ones has had its turn.
    for _ in range(bases.LOOKS - 1):
        Lookups(known).find(table, table.schema, key, wanted, choose=lambda files: files[:0])
    runs = []
    for _ in range(4):
        lookups = Lookups(known)
        found = lookups.find(table, table.schema, key, wanted, choose=lambda files: files[-share:])
        assert found is not None
        assert sorted(found[0].column("k").to_pylist()) == list(range(40 - 10 * share, 40))
        assert base_of(table, known) == table.version
        runs.append(lookups.rows_indexed)
    assert runs == ([indexed, 0, 0, 0] if indexed else [0, 0, 10, 0])
