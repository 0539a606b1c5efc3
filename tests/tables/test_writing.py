"""``t.write``: Arrow tables and DataFrames, matched by name; and what happens when other writers come first."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame

from tests.scenarios.story import contents, folder, inventory, refreshed
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.errors import ConcurrentModification, InvalidData, InvalidOption, UnknownColumn, UnknownTable
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import append, overwrite
from trickle.lake.scan import scan
from trickle.lake.snapshot import Snapshot
from trickle.lake.types import arrow_schema
from trickle.tables.writing import append_rows, change, match_names

PEOPLE = TableName.of(["people"])


@pytest.fixture
def people(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE people (id BIGINT NOT NULL, name STRING, born DATE, money DECIMAL(10, 2))")
    return t


@pytest.mark.portable
def test_an_arrow_table_is_written_by_name(people: Trickle) -> None:
    rows = pa.table({"NAME": ["ada", None], "id": pa.array([1, 2], pa.int32())})
    result = people.write("people", rows)
    assert (result.rows_inserted, result.rows_deleted) == (2, 0)
    assert contents(people, "people") == [(1, "ada", None, None), (2, None, None, None)]


def test_arrow_types_that_spark_does_not_read_are_cast(people: Trickle) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.uint8()),
            "name": pa.array(["ada", "bob"], pa.string_view()),
            "money": pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
        }
    )
    people.write("people", rows)
    people.write("people", pa.table({"id": [3], "name": pa.array(["eve"]).dictionary_encode()}))
    people.write("people", pa.table({"id": [4], "name": pa.array(["zoe"], pa.large_string())}))
    assert [(row[0], row[1]) for row in contents(people, "people")] == [(1, "ada"), (2, "bob"), (3, "eve"), (4, "zoe")]


@pytest.mark.portable
def test_a_data_frame_is_written_and_overwrites(people: Trickle) -> None:
    spark = people.warehouse.engine.spark
    people.write("people", spark.sql("SELECT 'ada' AS name, 1 AS id UNION ALL SELECT 'bob', 2"))
    # The rows may come from the table itself.
    kept = people.table("people").where("id = 2")
    result = people.write("people", kept, mode="overwrite")
    assert (result.rows_inserted, result.rows_deleted) == (1, 2)
    assert contents(people, "people") == [(2, "bob", None, None)]


def test_rows_that_do_not_fit_are_refused(people: Trickle) -> None:
    before = inventory(people)
    with pytest.raises(UnknownColumn, match="'nam'") as caught:
        people.write("people", pa.table({"id": [1], "nam": ["x"]}))
    assert caught.value.hint == "did you mean 'name'?"
    with pytest.raises(InvalidData, match="'id' is NOT NULL"):
        people.write("people", pa.table({"name": ["x"]}))
    with pytest.raises(InvalidData, match="two columns of one name"):
        people.write("people", pa.table({"id": [1], "ID": [2]}))
    with pytest.raises(InvalidData, match="'name' takes string"):
        people.write("people", pa.table({"id": [1], "name": [[1, 2]]}))
    with pytest.raises(UnknownTable):
        people.write("nobody", pa.table({"id": [1]}))
    with pytest.raises(InvalidOption, match="no write mode"):
        people.write("people", pa.table({"id": [1]}), mode="merge")  # type: ignore[arg-type] # what a user may type
    assert inventory(people) == before


def test_writing_nothing_commits_nothing(people: Trickle) -> None:
    before = inventory(people)
    people.write("people", pa.table({"id": pa.array([], pa.int64())}))
    assert inventory(people) == before


def test_an_append_goes_after_another_writer(people: Trickle) -> None:
    """The files are written once; only the commit is tried again."""
    asked = []

    def rows(snapshot: Snapshot) -> DataFrame:
        asked.append(snapshot.version)
        _append_outside(snapshot, 9)
        return match_names(people.warehouse.engine.sql("SELECT 1L AS id"), snapshot, PEOPLE)

    assert append_rows(people.warehouse, PEOPLE, rows).rows_inserted == 1
    assert asked == [0]
    assert [row[0] for row in contents(people, "people")] == [1, 9]


def test_a_rewrite_sees_what_another_writer_did_first(people: Trickle) -> None:
    t = people
    t.sql("INSERT INTO people (id, name) VALUES (1, 'a')")
    t.sql("CREATE STREAM TABLE s AS SELECT id % 8 AS kind, count(*) AS n FROM people GROUP BY id % 8")
    others = iter([9, 17])

    def prepare(snapshot: Snapshot) -> Prepared:
        prepared = overwrite(t.warehouse.engine, snapshot, scan(t.warehouse.engine, snapshot), difference=False)
        for number in others:
            _append_outside(snapshot, number)
            break
        return prepared

    assert change(t.warehouse, PEOPLE, prepare).rows_inserted == 3
    assert [row[0] for row in contents(t, "people")] == [1, 9, 17]
    refreshed(t, "s")
    assert contents(t, "s") == [(1, 3)]


def test_a_writer_that_always_loses_gives_up_and_leaves_nothing(people: Trickle) -> None:
    t = people
    t.sql("INSERT INTO people (id) VALUES (1); SET trickle.commit_attempts = 2")
    engine = t.warehouse.engine

    def lose(snapshot: Snapshot) -> Prepared:
        prepared = append(engine, snapshot, scan(engine, snapshot))
        _append_outside(snapshot, 9)
        return prepared

    with pytest.raises(ConcurrentModification):
        change(t.warehouse, PEOPLE, lose)
    assert [row[0] for row in contents(t, "people")] == [1, 9, 9]
    live = {Path(uri).name for uri in DeltaTable(str(folder(t, "people"))).file_uris()}
    assert {path.name for path in folder(t, "people").rglob("*.parquet")} == live


def _append_outside(snapshot: Snapshot, number: int) -> None:
    """What a writer that knows nothing of Trickle does."""
    row = {"id": number, "name": None, "born": None, "money": None}
    rows = pa.Table.from_pylist([row], schema=arrow_schema(snapshot.schema))
    write_deltalake(snapshot.location.uri, rows, mode="append")
