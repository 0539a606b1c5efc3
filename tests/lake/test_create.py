"""Tables come into being and go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import CalendarIntervalType, StructField, StructType

from tests.lake.tables import NUMBERS, entries, shape
from trickle.errors import DuplicateName, InvalidOption, UnknownTable, UnsupportedTable
from trickle.lake.create import create, drop, exists
from trickle.lake.location import Location
from trickle.lake.snapshot import open_snapshot


def test_a_new_table_is_empty_and_has_what_was_asked_for(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a b" / "täble")
    made = create(
        place,
        shape("id long NOT NULL, day date"),
        partition_by=["DAY"],
        properties={"delta.checkpointInterval": "7", "owner": "ada"},
        comment="of interest",
        info={"name": "t"},
    )
    assert made == open_snapshot(place)
    assert (made.version, made.files, made.partition_by) == (0, (), ("day",))
    assert [field.nullable for field in made.schema.fields] == [False, True]
    assert made.properties == {
        "delta.checkpointInterval": "7",
        "delta.enableExpiredLogCleanup": "false",
        "owner": "ada",
    }
    assert DeltaTable(place.uri).metadata().description == "of interest"
    assert entries(place, 0)[0]["commitInfo"]["trickle"] == {"kind": "create", "name": "t"}


def test_a_second_table_at_the_same_place_is_refused(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "t")
    create(place, NUMBERS)
    with pytest.raises(DuplicateName, match="already"):
        create(place, shape("other string"))
    assert open_snapshot(place).schema == NUMBERS


def test_of_two_creators_at_once_one_wins(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "t")

    def attempt(name: str) -> str:
        try:
            create(place, shape(f"{name} long"))
        except DuplicateName:
            return "lost"
        return name

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, [f"c{n}" for n in range(8)]))
    winner = [outcome for outcome in outcomes if outcome != "lost"]
    assert winner == open_snapshot(place).schema.names


def test_what_cannot_be_stored_leaves_nothing_behind(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "t")
    with pytest.raises(UnsupportedTable):
        create(place, StructType([StructField("i", CalendarIntervalType())]))
    with pytest.raises(InvalidOption, match="a number of commits, not 'often'"):
        create(place, NUMBERS, properties={"delta.checkpointInterval": "often"})
    with pytest.raises(InvalidOption, match="cannot be set"):
        create(place, NUMBERS, properties={"delta.columnMapping.mode": "name"})
    assert not exists(place)


def test_a_table_with_timestamps_without_zone_needs_that_feature_and_no_other(tmp_path: Path) -> None:
    properties = {"delta.appendOnly": "true", "delta.logRetentionDuration": "interval 30 days"}
    create(Location.of(tmp_path / "t"), shape("n timestamp_ntz"), properties=properties)
    assert DeltaTable(tmp_path / "t").protocol().reader_features == ["timestampNtz"]


def test_a_dropped_table_is_gone_with_its_files_and_can_be_made_again(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "t")
    create(place, NUMBERS)
    (tmp_path / "t" / "data-1").mkdir()
    (tmp_path / "t" / "data-1" / "part.parquet").write_bytes(b"x")
    drop(place)
    drop(place)
    assert not (tmp_path / "t").exists()
    with pytest.raises(UnknownTable):
        open_snapshot(place)
    assert create(place, shape("b string")).version == 0
