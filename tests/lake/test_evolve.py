"""A table changes its shape and keeps its rows."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from tests.lake.tables import (
    NUMBERS,
    committed,
    contents,
    delta_rs_contents,
    entries,
    filled,
    frame,
    net_changes,
    numbers_table,
    shape,
    write_numbers,
)
from trickle.engine import Engine
from trickle.errors import (
    ConcurrentModification,
    DuplicateName,
    InvalidData,
    InvalidOption,
    UnknownColumn,
    UnsupportedStatement,
    UnsupportedTable,
)
from trickle.lake.commit import TableCommit, commit
from trickle.lake.create import create
from trickle.lake.evolve import add_columns, select_columns, set_properties, widen, widens
from trickle.lake.location import Location
from trickle.lake.rewrite import append
from trickle.lake.snapshot import open_snapshot


def test_an_added_column_is_null_in_old_rows_and_writes_no_file(engine: Engine, tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    fields = [StructField("at", TimestampNTZType()), StructField("note", StringType(), True, {"comment": "why"})]
    assert add_columns(table, fields) == 2
    newer = open_snapshot(table.location)
    assert newer.files == table.files
    assert newer.schema["note"].metadata == {"comment": "why"}
    filled_now = committed(append(engine, newer, frame(engine, newer.schema, [(2, datetime(2024, 1, 1), "x")])))
    expected = {(1, None, None): 1, (2, datetime(2024, 1, 1), "x"): 1}
    assert contents(engine, filled_now) == delta_rs_contents(table.location) == expected
    assert net_changes(engine, newer, table.version) == {}


def test_a_column_that_cannot_be_added_is_refused(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    with pytest.raises(InvalidData, match="NOT NULL"):
        add_columns(table, [StructField("n", LongType(), False)])
    with pytest.raises(DuplicateName, match="'ID'"):
        add_columns(table, [StructField("ID", LongType())])
    with pytest.raises(UnsupportedTable):
        add_columns(table, [StructField("n", DataType())])
    assert open_snapshot(table.location) == table


def test_of_two_changes_of_shape_from_one_version_the_second_is_refused(tmp_path: Path) -> None:
    table = numbers_table(tmp_path, [1])
    add_columns(table, [StructField("a", LongType())])
    with pytest.raises(ConcurrentModification):
        add_columns(table, [StructField("b", LongType())])
    with pytest.raises(ConcurrentModification):
        set_properties(table, {"owner": "ada"})
    file = write_numbers(table.location, [2], "late.parquet")
    with pytest.raises(ConcurrentModification):
        commit(TableCommit(table.location, table.version, adds=(file,)))
    assert open_snapshot(table.location).schema.names == ["id", "a"]


def test_properties_are_set_where_delta_rs_does_so_safely(tmp_path: Path) -> None:
    table = numbers_table(tmp_path / "plain", [1])
    set_properties(table, {"delta.checkpointInterval": "50", "owner": "ada"})
    newer = open_snapshot(table.location)
    assert (newer.properties["delta.checkpointInterval"], newer.properties["owner"]) == ("50", "ada")
    with pytest.raises(InvalidOption):
        set_properties(newer, {"delta.enableDeletionVectors": "true"})
    moments = create(Location.of(tmp_path / "moments"), shape("n timestamp_ntz"))
    with pytest.raises(UnsupportedTable, match="cannot be changed"):
        set_properties(moments, {"owner": "ada"})
    assert DeltaTable(tmp_path / "moments").protocol().reader_features == ["timestampNtz"]


def test_columns_are_dropped_and_renamed_without_a_change_of_rows(engine: Engine, tmp_path: Path) -> None:
    schema = shape("id long NOT NULL, a string, b string, p string")
    table = filled(engine, tmp_path, schema, [(1, "x", "y", "p"), (2, None, "z", None)], ["p"])
    newer = committed(select_columns(engine, table, [("id", "id"), ("B", "better"), ("p", "p")]))
    assert newer.schema == shape("id long NOT NULL, better string, p string")
    assert contents(engine, newer) == delta_rs_contents(table.location) == {(1, "y", "p"): 1, (2, "z", None): 1}
    assert net_changes(engine, newer, table.version) == {}
    note = entries(table.location, newer.version)[0]["commitInfo"]["trickle"]
    assert (note["changes"], note["inserted"], note["deleted"]) == ([], 0, 0)
    with pytest.raises(UnsupportedStatement, match="'p'"):
        select_columns(engine, newer, [("id", "id")])
    with pytest.raises(UnsupportedStatement, match="'p'"):
        select_columns(engine, newer, [("id", "id"), ("p", "q")])
    with pytest.raises(UnknownColumn, match="'beter'"):
        select_columns(engine, newer, [("beter", "b"), ("p", "p")])


def test_types_widen_and_values_stay(engine: Engine, tmp_path: Path) -> None:
    schema = shape("i integer NOT NULL, f float, d decimal(5;2), t date")
    table = filled(engine, tmp_path, schema, [(1, 1.5, None, date(2024, 1, 1))])
    newer = committed(widen(engine, table, {"I": LongType(), "f": DoubleType(), "d": DecimalType(20, 4)}))
    assert newer.schema == shape("i long NOT NULL, f double, d decimal(20;4), t date")
    assert contents(engine, newer) == delta_rs_contents(table.location) == {(1, 1.5, None, date(2024, 1, 1)): 1}
    assert newer.files[0].maximum["i"] == 1
    with pytest.raises(UnsupportedStatement, match="from bigint to int"):
        widen(engine, newer, {"i": IntegerType()})


@pytest.mark.parametrize(
    "old, new, wider",
    [
        (ShortType(), IntegerType(), True),
        (IntegerType(), DecimalType(10, 0), True),
        (IntegerType(), DecimalType(10, 1), False),
        (LongType(), DecimalType(20, 0), True),
        (DecimalType(5, 2), DecimalType(6, 3), True),
        (DecimalType(5, 2), DecimalType(5, 3), False),
        (DoubleType(), FloatType(), False),
        (DateType(), TimestampNTZType(), True),
        (DateType(), TimestampType(), False),
        (StringType(), LongType(), False),
        (StringType(), StringType(), True),
    ],
)
def test_a_type_is_wider_when_it_holds_every_value(old: DataType, new: DataType, wider: bool) -> None:
    assert widens(old, new) is wider


def test_an_empty_table_changes_its_shape_too(engine: Engine, tmp_path: Path) -> None:
    table = create(Location.of(tmp_path), NUMBERS)
    newer = committed(select_columns(engine, table, [("id", "number")]))
    assert (newer.schema.names, newer.files) == (["number"], ())
