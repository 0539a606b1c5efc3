"""Where a source stands: from the catalog and the log, without Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from trickle.algebra.names import TableName
from trickle.catalog.records import Kind, Relation
from trickle.errors import InternalError, UnknownTable
from trickle.lake.location import Location
from trickle.sources.lake import LakePosition, current, is_same_table, stamp

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def relation(kind: Kind) -> Relation:
    return Relation(1, TableName.of(["a"]), kind, "u1", None, {}, None, (), None, NOW, NOW)


def write(place: Path, *numbers: int, mode: str = "append") -> None:
    rows = pa.table({"x": list(numbers)})
    if mode == "append":
        write_deltalake(place, rows, mode="append")
    else:
        write_deltalake(place, rows, mode="overwrite")


@pytest.mark.parametrize("position", [LakePosition("u", 0), LakePosition("ab-c", 12), LakePosition("u", 3, "1f.2a")])
def test_a_position_survives_its_text(position: LakePosition) -> None:
    assert LakePosition.parse(str(position)) == position


@pytest.mark.parametrize("text", ["", "@", "1", "x@u", "-1@u", "1@", "1@#s"])
def test_a_text_that_is_no_position_is_a_defect(text: str) -> None:
    with pytest.raises(InternalError, match="not a position"):
        LakePosition.parse(text)


def test_a_table_stands_at_the_end_of_its_log(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    for number in range(3):
        write(tmp_path / "a", number)
    assert current(relation(Kind.TABLE), place, None, None) == LakePosition("u1", 2)
    assert current(relation(Kind.TABLE), place, None, LakePosition("u1", 1)) == LakePosition("u1", 2)
    # What is known about another incarnation says nothing about this one.
    assert current(relation(Kind.TABLE), place, None, LakePosition("u0", 900)) == LakePosition("u1", 2)
    with pytest.raises(UnknownTable):
        current(relation(Kind.TABLE), Location.of(tmp_path / "nothing"), None, None)


def test_a_stream_table_stands_where_the_catalog_pins_it(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    write(tmp_path / "a", 1)
    write(tmp_path / "a", 2)
    kind = relation(Kind.STREAM_TABLE)
    assert current(kind, place, 0, None) == LakePosition("u1", 0)
    with pytest.raises(InternalError, match="without contents"):
        current(kind, place, None, None)


def test_a_replica_stands_where_the_catalog_pins_it(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    write(tmp_path / "a", 1)
    assert current(relation(Kind.REPLICA), place, 0, None) == LakePosition("u1", 0)
    with pytest.raises(InternalError, match="without contents"):
        current(relation(Kind.REPLICA), place, None, None)


def test_a_table_that_is_pinned_stands_there(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    write(tmp_path / "a", 1)
    assert current(relation(Kind.TABLE), place, 0, LakePosition("u1", 1)) == LakePosition("u1", 0)


def test_a_view_has_no_position(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="a view has no position"):
        current(relation(Kind.VIEW), Location.of(tmp_path), None, None)


def test_the_stamp_tells_a_table_from_another_one_at_the_same_place(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    write(tmp_path / "a", 1)
    write(tmp_path / "a", 2)
    attached = relation(Kind.ATTACHED)
    first = current(attached, place, None, None)
    assert first is not None
    assert first.version == 1
    assert first.stamp
    write(tmp_path / "a", 3)
    second = current(attached, place, None, first)
    assert second is not None
    assert is_same_table(place, first, second)
    assert not is_same_table(place, second, first)
    # Its owner wrote the table anew, up to the same version.
    log = tmp_path / "a" / "_delta_log"
    for number in range(3):
        file = log / f"{number:020d}.json"
        os.utime(file, (0, number))
    third = current(attached, place, None, second)
    assert third is not None
    assert third.version == second.version
    assert not is_same_table(place, second, third)
    assert not is_same_table(place, first, replace(third, version=2))


def test_a_log_that_was_cleaned_behind_a_position_is_still_the_same_table(tmp_path: Path) -> None:
    place = Location.of(tmp_path / "a")
    write(tmp_path / "a", 1)
    write(tmp_path / "a", 2)
    old = LakePosition("u1", 0, stamp(place, 0))
    new = LakePosition("u1", 1, stamp(place, 1))
    (tmp_path / "a" / "_delta_log" / f"{0:020d}.json").unlink()
    assert stamp(place, 0) == ""
    assert is_same_table(place, old, new)
    assert not is_same_table(place, replace(old, uid="u0"), new)
