"""Tables made here are read by deltalake and DuckDB, and theirs are read and written here: the same rows for all."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from tests.lake.tables import (
    Row,
    committed,
    contents,
    counted,
    delta,
    delta_rs_contents,
    duckdb_contents,
    filled,
    frame,
    net_changes,
    plain,
    shape,
)
from trickle.engine import Engine
from trickle.lake.compact import compact
from trickle.lake.evolve import add_columns, select_columns
from trickle.lake.location import Location
from trickle.lake.merge import merge_keyed, merge_rows
from trickle.lake.rewrite import append, overwrite
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot, open_snapshot

MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123457)

EVERYTHING = StructType(
    [
        *shape("id long NOT NULL, tiny byte, small short, i integer, f float, d double, b boolean").fields,
        *shape("s string, bytes binary, day date, at timestamp, local timestamp_ntz, nothing string").fields,
        StructField("m", DecimalType(38, 18)),
        StructField("list", ArrayType(StringType())),
        StructField("pairs", MapType(StringType(), IntegerType())),
        StructField("struct", StructType([StructField("x", LongType()), StructField("y", ArrayType(LongType()))])),
    ]
)
FULL: Row = (
    *(1, -128, -32768, 2147483647, 0.5, float("nan"), True),
    *("ünï\n'\"\0", b"\0\xff", date(1583, 1, 1), MOMENT.replace(tzinfo=UTC), MOMENT, None),
    *(Decimal("12345678901234567890.123456789012345678"), ["a", None], [("k", 1), ("l", None)], {"x": 1, "y": []}),
)
BARE: Row = (2, *[None] * 16)
EMPTY: Row = (
    *(3, 0, 0, 0, -0.0, float("-inf"), False, "", b"", date(9999, 12, 31)),
    *(datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1), None, Decimal(0), [], [], {"x": None, "y": None}),
)


def assert_all_agree(engine: Engine, table: Snapshot) -> Any:
    """All readers see the same rows, which are returned."""
    rows = contents(engine, table)
    assert rows == delta_rs_contents(table.location)
    assert rows == duckdb_contents(table.location)
    return rows


def test_every_type_is_read_alike(engine: Engine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, EVERYTHING, [FULL, BARE, BARE, EMPTY])
    assert assert_all_agree(engine, table) == Counter(plain(row) for row in (FULL, BARE, BARE, EMPTY))


def test_partition_values_are_read_alike(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long, s string, day date, n integer, m decimal(9;3), at timestamp")
    rows: list[Row] = [
        (1, "a b/c=ü%25", date(2024, 2, 29), -1, Decimal("1.500"), MOMENT.replace(tzinfo=UTC)),
        (2, None, None, None, None, None),
        (3, "null", date(1970, 1, 1), 0, Decimal("0.001"), datetime(1969, 12, 31, tzinfo=UTC)),
        (4, " ", date(1970, 1, 1), 0, Decimal("-2.000"), datetime(1969, 12, 31, tzinfo=UTC)),
    ]
    table = filled(engine, tmp_path, schema, rows, schema.names[1:])
    assert assert_all_agree(engine, table) == dict.fromkeys(rows, 1)


def test_a_table_is_read_alike_through_all_its_changes(engine: Engine, tmp_path: Path) -> None:
    schema = shape("k long, p string, v string")
    table = filled(engine, tmp_path, schema, [(k, p, "old") for k in range(4) for p in ("a", None)], ["p"])
    assert_all_agree(engine, table)
    update = [((1, None, ""), -1), ((1, None, "new"), 1), ((9, "z", "new"), 1)]
    table = committed(merge_keyed(engine, table, delta(engine, schema, update), ["k", "p"]))
    assert_all_agree(engine, table)
    add_columns(table, [StructField("n", DecimalType(5, 2))])
    table = open_snapshot(table.location)
    assert_all_agree(engine, table)
    table = committed(merge_rows(engine, table, delta(engine, table.schema, [((0, "a", "old", None), -1)])))
    table = committed(append(engine, table, frame(engine, table.schema, [(5, "a", "x", Decimal("1.25"))])))
    assert_all_agree(engine, table)
    table = committed(compact(engine, table))
    assert_all_agree(engine, table)
    table = committed(select_columns(engine, table, [("n", "amount"), ("p", "p"), ("k", "k")]))
    rows = assert_all_agree(engine, table)
    assert rows[(Decimal("1.25"), "a", 5)] == 1
    table = committed(overwrite(engine, table, scan(engine, table).where("k > 1"), difference=True))
    assert assert_all_agree(engine, table) == {row: n for row, n in rows.items() if row[2] > 1}


def test_statistics_written_here_let_others_skip_files_and_lose_no_row(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long, s string, at timestamp, m decimal(38;18)")
    long = "x" * 40
    rows: list[Row] = [
        (n, long + str(n), MOMENT.replace(tzinfo=UTC), Decimal("0.000000000000000001") * n) for n in (1, 2)
    ]
    table = filled(engine, tmp_path, schema, rows[:1])
    committed(append(engine, table, frame(engine, schema, rows[1:])))
    found = DeltaTable(tmp_path)
    dataset = found.to_pyarrow_dataset()
    field = pc.field
    for condition in (
        field("s") == pa.scalar(long + "2"),
        field("at") == pa.scalar(MOMENT.replace(tzinfo=UTC), pa.timestamp("us", "UTC")),
        field("m") > pa.scalar(Decimal("0.000000000000000001"), pa.decimal128(38, 18)),
        field("id") > 1,
    ):
        assert 2 in dataset.to_table(filter=condition).column("id").to_pylist()
    assert sorted(found.get_add_actions(flatten=True).column("num_records").to_pylist()) == [1, 1]


@pytest.mark.parametrize("partition_by", [[], ["p"]])
def test_a_table_made_by_deltalake_is_read_appended_to_and_merged_here(
    engine: Engine, tmp_path: Path, partition_by: list[str]
) -> None:
    given = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "p": pa.array(["a b", None, "ü/%"], pa.string()),
            "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
            "l": pa.array([[1], None, []], pa.list_(pa.int32())),
        }
    )
    write_deltalake(tmp_path, given, partition_by=partition_by)
    table = open_snapshot(Location.of(tmp_path))
    # Delta puts no partition column last: the order of the schema is the table's own.
    assert assert_all_agree(engine, table) == counted(given)
    table = committed(append(engine, table, frame(engine, table.schema, [(4, "new", None, [None])])))
    moment = MOMENT.replace(tzinfo=UTC)
    changed = [((2, None, None, None), -1), ((2, "x", moment, [7]), 1)]
    table = committed(merge_rows(engine, table, delta(engine, table.schema, changed)))
    table = committed(merge_keyed(engine, table, delta(engine, table.schema, [((3, None, None, None), -1)]), ["id"]))
    rows = assert_all_agree(engine, table)
    assert rows == {(1, "a b", moment, (1,)): 1, (2, "x", moment, (7,)): 1, (4, "new", None, (None,)): 1}
    write_deltalake(tmp_path, given.slice(0, 1), mode="append")
    newest = open_snapshot(table.location)
    assert assert_all_agree(engine, newest)[(1, "a b", moment, (1,))] == 2
    assert net_changes(engine, newest, table.version) == {(1, "a b", moment, (1,)): 1}
