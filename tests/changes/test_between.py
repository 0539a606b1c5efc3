"""The changes of a source between two positions: counted from the log, read on demand."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.scenarios.story import folder, plain
from trickle.api import Trickle
from trickle.changes.between import ChangeBuffer
from trickle.engine import Engine
from trickle.errors import HistoryLost
from trickle.lake.location import Location
from trickle.sources.lake import LakePosition, stamp


def between(place: Path, old: int, new: int, uid: str = "u", other: str | None = None) -> ChangeBuffer:
    return ChangeBuffer(Location.of(place), LakePosition(uid, old), LakePosition(other or uid, new))


def test_known_numbers_come_from_the_log_alone(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT)")
    t.sql("INSERT INTO a VALUES (1), (2), (3); UPDATE a SET x = 9 WHERE x = 1; DELETE FROM a WHERE x = 2")
    place = folder(t, "a")
    assert between(place, 0, 1).known_rows() == 3
    assert between(place, 1, 2).known_rows() == 2
    assert between(place, 2, 3).known_rows() == 1
    assert between(place, 3, 3).known_rows() == 0
    t.sql("ALTER TABLE a ADD COLUMN y INT")
    assert between(place, 3, 4).known_rows() == 0


def test_a_table_of_another_writer_tells_an_upper_bound_or_nothing(tmp_path: Path) -> None:
    place = tmp_path / "a"
    write_deltalake(place, pa.table({"x": [1, 2, 3]}))
    write_deltalake(place, pa.table({"x": [4]}), mode="append")
    assert between(place, 0, 1).known_rows() == 1
    DeltaTable(place).delete("x = 2")
    # The file was rewritten: how many of its rows changed is known only by reading it.
    assert between(place, 1, 2).known_rows() is None
    DeltaTable(place).optimize.compact()
    assert between(place, 2, DeltaTable(place).version()).known_rows() == 0


def test_rows_are_net(engine: Engine, tmp_path: Path) -> None:
    place = tmp_path / "a"
    write_deltalake(place, pa.table({"x": [1, 2, 2], "y": ["a", "b", "b"]}))
    write_deltalake(place, pa.table({"x": [2, 2, 3], "y": ["b", "b", "c"]}), mode="overwrite")
    assert plain(between(place, 0, 1).rows(engine)) == [(1, "a", -1), (3, "c", 1)]
    assert plain(between(place, 0, 1).rows(engine, ["x"])) == [(1, -1), (3, 1)]
    assert plain(between(place, 1, 1).rows(engine)) == []


def test_between_two_incarnations_or_backwards_there_is_no_change_to_read(engine: Engine, tmp_path: Path) -> None:
    place = tmp_path / "a"
    write_deltalake(place, pa.table({"x": [1]}))
    write_deltalake(place, pa.table({"x": [2]}), mode="append")
    for unreachable in (between(place, 0, 1, "u", "v"), between(place, 1, 0)):
        assert not unreachable.is_reachable
        assert unreachable.known_rows() is None
        with pytest.raises(HistoryLost, match="was replaced between"):
            unreachable.rows(engine)


def test_a_table_written_anew_at_the_same_place_is_another(tmp_path: Path) -> None:
    place = tmp_path / "a"
    write_deltalake(place, pa.table({"x": [1]}))
    here = Location.of(place)
    old = LakePosition("u", 0, stamp(here, 0))
    os.utime(place / "_delta_log" / f"{0:020d}.json", (0, 0))
    buffer = ChangeBuffer(here, old, LakePosition("u", 0, stamp(here, 0)))
    assert not buffer.is_reachable
    assert buffer.known_rows() is None


def test_a_count_over_lost_history_is_unknown(tmp_path: Path) -> None:
    place = tmp_path / "a"
    for number in range(3):
        write_deltalake(place, pa.table({"x": [number]}), mode="append")
    DeltaTable(place).create_checkpoint()
    for version in (0, 1):
        (place / "_delta_log" / f"{version:020d}.json").unlink()
    assert between(place, 0, 2).known_rows() is None
