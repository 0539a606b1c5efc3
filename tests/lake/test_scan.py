from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql.types import LongType, StringType

from tests.lake.conftest import MakeForeign
from tests.lake.foreign import add, multiset, remove
from trickle.algebra.weights import FILE, ROW
from trickle.engine import Engine
from trickle.errors import CorruptTable, UnknownColumn, UnsupportedTable
from trickle.lake.location import Location
from trickle.lake.scan import scan
from trickle.lake.snapshot import open_snapshot

HOSTILE = ["a b", "50%", "a%20b", "x=y", "p/q", "c:d", "ü€😀", "a+b", "*?[1]{a,b}", "\\", "'\"", "#", None, ""]


def read(engine: Engine, place: Path, version: int | None = None) -> Counter[str]:
    return multiset(scan(engine, open_snapshot(Location.of(place), version)))


def read_by_deltalake(place: Path, version: int | None = None) -> Counter[str]:
    return multiset(DeltaTable(place, version=version).to_pyarrow_table())


@pytest.mark.portable
def test_a_plain_table_is_read_as_deltalake_reads_it(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, None], "s": ["a", None, ""], "f": [1.5, float("nan"), None]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "s": ["a"], "f": [0.0]}), mode="append")
    assert read(engine, tmp_path) == read_by_deltalake(tmp_path)
    assert read(engine, tmp_path, 0) == read_by_deltalake(tmp_path, 0)


@pytest.mark.portable
def test_trap_partition_values_come_from_the_log_and_are_unquoted_once(engine: Engine, tmp_path: Path) -> None:
    rows = pa.table({"p": HOSTILE, "id": list(range(len(HOSTILE)))})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    assert read(engine, tmp_path) == read_by_deltalake(tmp_path)
    # The protocol has no empty text as a partition value: it is NULL, for every reader.
    assert read(engine, tmp_path) == multiset(pa.table({"p": [*HOSTILE[:-1], None], "id": list(range(len(HOSTILE)))}))


def test_a_row_is_located_by_the_spelling_of_the_log(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"p": [*HOSTILE, "a b"], "id": list(range(15))}), partition_by=["p"])
    snapshot = open_snapshot(Location.of(tmp_path))
    located = scan(engine, snapshot, located=True, columns=["id"]).collect()
    values = {file.path: file.partition["p"] for file in snapshot.files}
    assert {row[FILE] for row in located} == set(values)
    for row in located:
        assert values[row[FILE]] == (HOSTILE[row["id"]] if row["id"] < 14 else "a b")
    assert sorted(row[ROW] for row in located) == [0] * 14 + [1]


TYPED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [1, -(2**63), None]),
    "byte": (pa.int8(), [1, -128, None]),
    "float": (pa.float32(), [1.5, float("inf"), None]),
    "double": (pa.float64(), [0.1, float("nan"), None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), None]),
    "decimal": (pa.decimal128(38, 10), [Decimal("12345678901234567890.0123456789"), Decimal("2.5"), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 2, 29, 12, 0, 0, 123456, dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC), None],
    ),
    "timestampNtz": (pa.timestamp("us"), [dt.datetime(2024, 2, 29, 12, 0, 0, 123456), None]),
}


@pytest.mark.parametrize("name", TYPED)
def test_partition_values_have_the_type_of_their_column(engine: Engine, tmp_path: Path, name: str) -> None:
    kind, values = TYPED[name]
    rows = pa.table({"p": pa.array(values, kind), "id": list(range(len(values)))})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    assert read(engine, tmp_path) == read_by_deltalake(tmp_path) == multiset(rows)
    one = open_snapshot(Location.of(tmp_path))
    for file in one.files:
        assert scan(engine, one, files=[file]).schema["p"].dataType == one.schema["p"].dataType


def test_a_binary_partition_value_is_read_in_both_spellings(engine: Engine, tmp_path: Path) -> None:
    """deltalake spells bytes with backslashes (and does not read them back), Spark as they are."""
    rows = pa.table({"p": pa.array([b"\x01\xff", b"abc", None], pa.binary()), "id": [1, 2, 3]})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    assert read(engine, tmp_path) == multiset(rows)


SPELLINGS = [
    ("timestamp", "2024-02-29 12:00:00", dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)),
    ("timestamp", "2024-02-29 12:00:00.5", dt.datetime(2024, 2, 29, 12, 0, 0, 500_000, dt.UTC)),
    ("timestamp", "2024-02-29T12:00:00.123456Z", dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, dt.UTC)),
    ("timestamp", "2024-02-29T12:00:00+02:00", dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC)),
    ("timestamp", "2024-02-29", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    ("timestamp_ntz", "2024-02-29 12:00:00.000001", dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
    ("binary", "\x01\x02", b"\x01\x02"),
    ("boolean", "TRUE", True),
    ("decimal(10,2)", "1E+2", Decimal("100.00")),
    ("integer", "-7", -7),
    ("string", "NULL", "NULL"),
    ("string", "", None),
    ("date", "", None),
]


@pytest.mark.parametrize("type_name, text, value", SPELLINGS)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_spellings_of_the_protocol(
    engine: Engine, foreign: MakeForeign, type_name: str, text: str, value: object, zone: str
) -> None:
    """Alone (a literal) and beside another value (a join), and in whatever time zone the session is."""
    table = foreign(f"id long, p {type_name}", partition_by=["p"], features=["timestampNtz"])
    table.commit(add(table.write("a.parquet", {"id": [1]}), partition={"p": text}))
    before = engine.spark.conf.get("spark.sql.session.timeZone")
    engine.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        alone = scan(engine, open_snapshot(table.location)).toArrow()
        table.commit(add(table.write("b.parquet", {"id": [2]}), partition={"p": None}))
        beside = scan(engine, open_snapshot(table.location)).toArrow()
    finally:
        engine.spark.conf.set("spark.sql.session.timeZone", str(before))
    assert alone.to_pylist() == [{"id": 1, "p": value}]
    assert {row["id"]: row["p"] for row in beside.to_pylist()} == {1: value, 2: None}


@pytest.mark.parametrize(
    "type_name, text",
    [
        ("integer", "x"),
        ("date", "tomorrow"),
        ("timestamp", "12:00"),
        ("boolean", "1"),
        ("decimal(10,2)", "0.-1"),
        ("double", "one"),
    ],
)
def test_a_partition_value_of_another_type_is_a_corrupt_table_never_null(
    engine: Engine, foreign: MakeForeign, type_name: str, text: str
) -> None:
    table = foreign(f"id long, p {type_name}", partition_by=["p"])
    table.commit(add(table.write("a.parquet", {"id": [1]}), partition={"p": text}))
    with pytest.raises(CorruptTable, match="partition value"):
        scan(engine, open_snapshot(table.location))


def test_partition_values_that_folders_contradict_come_from_the_log(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, p integer, q string", partition_by=["p", "q"])
    table.commit(
        add(table.write("p=99/q=no/part-0.parquet", {"id": [1]}), partition={"p": "1", "q": "a"}, rows=1),
        add(table.write("odd/place/part-0.parquet", {"id": [2]}), partition={"p": "2", "q": None}, rows=1),
        add(table.write("part-1.parquet", {"id": [3]}), partition={"p": None, "q": "c"}, rows=1),
    )
    assert multiset(scan(engine, open_snapshot(table.location))) == table.read_by_deltalake()
    assert sorted(map(tuple, scan(engine, open_snapshot(table.location)).where("p IS NOT NULL").collect())) == [
        (1, 1, "a"),
        (2, 2, None),
    ]


@pytest.mark.portable
def test_files_of_the_same_name_are_told_apart_by_their_folder(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"], name="t %25+ü[1]{x}")
    for number, folder in enumerate(["a%20b", "a%2520b", "a+b", "%C3%BC", "x%5B1%5D", "q%3F"]):
        path = table.write(f"{folder}/part-0.parquet", {"id": [number]})
        table.commit(add(path, partition={"p": folder}, rows=1))
    located = scan(engine, open_snapshot(table.location), located=True).collect()
    assert len(located) == 6
    assert all(row[FILE] == f"{row['p']}/part-0.parquet" for row in located)
    uri = scan(engine, open_snapshot(Location(table.root.as_uri())), located=True).collect()
    assert Counter(map(tuple, uri)) == Counter(map(tuple, located))


def test_absolute_paths_are_followed(engine: Engine, foreign: MakeForeign, tmp_path: Path) -> None:
    table = foreign("id long, p long", partition_by=["p"])
    far = (tmp_path / "else where" / "a.parquet").as_uri()
    plain = str(tmp_path / "third" / "b%20c.parquet")
    (tmp_path / "third").mkdir()
    table.write(far, {"id": [1]})
    table.write(plain, {"id": [2]})
    table.commit(add(far, partition={"p": "1"}), add(plain, partition={"p": "2"}))
    rows = scan(engine, open_snapshot(table.location), located=True).collect()
    assert sorted((row["id"], row["p"], row[FILE]) for row in rows) == [(1, 1, far), (2, 2, plain)]


@pytest.mark.portable
def test_columns_younger_than_a_file_are_null(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "new": ["x"]}), mode="append", schema_mode="merge")
    assert read(engine, tmp_path) == read_by_deltalake(tmp_path)
    assert read(engine, tmp_path, 0) == multiset(pa.table({"id": [1]}))


def test_columns_of_files_that_the_schema_does_not_name_are_ignored(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add(table.write("a.parquet", {"_change_type": ["insert"], "id": [1], "gone": [2]})))
    assert [row.asDict() for row in scan(engine, open_snapshot(table.location)).collect()] == [{"id": 1}]


@pytest.mark.portable
def test_every_type_is_read(engine: Engine, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "b": pa.array([b"\x00", None]),
            "d": pa.array([Decimal("1.10"), None], pa.decimal128(10, 2)),
            "t": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1, dt.UTC), None], pa.timestamp("us", "UTC")),
            "n": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "s": pa.array([{"x": [{"y": 1}]}, None], pa.struct({"x": pa.list_(pa.struct({"y": pa.int64()}))})),
        }
    )
    write_deltalake(tmp_path, rows)
    assert DeltaTable(tmp_path).protocol().min_reader_version == 3
    assert read(engine, tmp_path) == read_by_deltalake(tmp_path)


def test_columns_are_chosen_in_the_order_asked_for_and_without_case(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"Id": [1], "p": ["x"], "v": [2]}), partition_by=["p"])
    snapshot = open_snapshot(Location.of(tmp_path))
    assert scan(engine, snapshot, columns=["V", "p", "id"]).columns == ["v", "p", "Id"]
    assert scan(engine, snapshot, columns=["p"]).collect() == [("x",)]
    assert scan(engine, snapshot, columns=[]).count() == 1
    with pytest.raises(UnknownColumn, match="idd") as caught:
        scan(engine, snapshot, columns=["idd"])
    assert caught.value.hint == "did you mean Id?"


def test_names_with_dots_backticks_and_metadata_are_columns_like_others(engine: Engine, tmp_path: Path) -> None:
    rows = pa.table({"a.b": [1, 2], "c`d": [3, 4], "_metadata": [5, 6], "p": ["x", "y"]})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    assert read(engine, tmp_path) == multiset(rows)
    located = scan(engine, open_snapshot(Location.of(tmp_path)), located=True)
    assert {row[ROW] for row in located.collect()} == {0}


@pytest.mark.portable
def test_a_table_without_files_is_empty_and_has_its_columns(engine: Engine, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}))
    DeltaTable(tmp_path).delete()
    snapshot = open_snapshot(Location.of(tmp_path))
    with engine.count_jobs() as count:
        empty = scan(engine, snapshot, located=True)
        assert empty.collect() == []
    assert empty.columns == ["id", "m", FILE, ROW]
    assert (empty.schema[FILE].dataType, empty.schema[ROW].dataType) == (StringType(), LongType())
    assert count.jobs in (0, None)


def test_only_the_files_given_are_read(engine: Engine, tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    snapshot = open_snapshot(Location.of(tmp_path))
    chosen = [file for file in snapshot.files if file.minimum["id"] == 1]
    assert [row["id"] for row in scan(engine, snapshot, files=chosen).collect()] == [1]
    assert scan(engine, snapshot, files=[]).collect() == []


def test_files_of_a_former_partitioning_are_read_beside_new_ones(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign("id long, p string", partition_by=["p"])
    table.commit(add(table.write("a.parquet", {"id": [1]}), partition={"p": "x"}))
    old = open_snapshot(table.location).files
    table.commit(
        table.metadata("id long, p string", partition_by=[]),
        remove("a.parquet"),
        add(table.write("b.parquet", {"id": [2], "p": ["y"]})),
    )
    now = open_snapshot(table.location)
    both = scan(engine, now, files=[*old, *now.files]).collect()
    assert sorted(map(tuple, both)) == [(1, "x"), (2, "y")]


def test_trap_more_than_32_files_start_no_listing_job(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(*(add(table.write(f"part-{n}.parquet", {"id": [n]})) for n in range(40)))
    with engine.count_jobs() as building:
        rows = scan(engine, open_snapshot(table.location))
    with engine.count_jobs() as reading:
        assert rows.count() == 40
    assert building.jobs == 0
    assert reading.jobs is not None
    assert reading.jobs > 0


def test_a_file_that_spark_would_skip_by_its_name_is_refused(engine: Engine, foreign: MakeForeign) -> None:
    table = foreign()
    table.commit(add(table.write("_hidden.parquet", {"id": [1]})))
    with pytest.raises(UnsupportedTable, match="ignores"):
        scan(engine, open_snapshot(table.location))


def test_a_table_that_deltalake_rewrote_in_every_way_is_read_at_every_version(engine: Engine, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(20)), "p": [n % 3 for n in range(20)], "v": ["a"] * 20})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    DeltaTable(tmp_path).update({"v": "'b'"}, predicate="id % 2 = 0")
    DeltaTable(tmp_path).delete("id < 5")
    source = pa.table({"id": [6, 100], "p": [0, 1], "v": ["merged", "new"]})
    merge = DeltaTable(tmp_path).merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, rows.slice(0, 2), mode="overwrite", predicate="p = 0 OR p = 1")
    for version in range(DeltaTable(tmp_path).version() + 1):
        assert read(engine, tmp_path, version) == read_by_deltalake(tmp_path, version)
    query = QueryBuilder().register("t", DeltaTable(tmp_path)).execute("SELECT * FROM t").read_all()
    assert read(engine, tmp_path) == multiset(pa.table(query))


def test_a_void_column_is_null(engine: Engine, foreign: MakeForeign) -> None:
    text = json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("v", "void"))
            ],
        }
    )
    table = foreign(text)
    table.commit(add(table.write("a.parquet", {"id": [1]})))
    assert scan(engine, open_snapshot(table.location)).collect() == [(1, None)]
