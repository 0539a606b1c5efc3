"""Tables that others write, read under a name."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.lake.foreign import ForeignTable, add, inline_vector, remove
from tests.scenarios.story import contents, differences, inventory, refreshed, refused, state
from trickle.api import Trickle
from trickle.errors import DuplicateName, InvalidOption, UnknownTable, UnsupportedTable, WrongKind


@pytest.mark.portable
def test_a_stream_table_follows_a_table_of_another_writer(t: Trickle, tmp_path: Path) -> None:
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"id": [1, 2, 3], "kind": ["a", "b", "a"]}))
    t.attach_table("events", place)
    t.sql("CREATE STREAM TABLE kinds AS SELECT kind, count(*) AS n FROM events GROUP BY kind")
    assert contents(t, "kinds") == [("a", 2), ("b", 1)]
    write_deltalake(place, pa.table({"id": [4], "kind": ["c"]}), mode="append")
    assert refreshed(t, "kinds").action == "FULL"
    DeltaTable(place).delete("kind = 'a'")
    DeltaTable(place).update(updates={"kind": "'d'"}, predicate="id = 2")
    refreshed(t, "kinds")
    assert contents(t, "kinds") == [("c", 1), ("d", 1)]
    DeltaTable(place).optimize.compact()
    assert refreshed(t, "kinds").action == "NO_DATA"
    write_deltalake(place, pa.table({"id": [9], "kind": ["z"]}), mode="overwrite")
    refreshed(t, "kinds")
    assert contents(t, "kinds") == [("z", 1)]


def test_partition_values_come_from_the_log(t: Trickle, tmp_path: Path) -> None:
    place = tmp_path / "sales"
    rows = pa.table({"id": [1, 2, 3], "day": [date(2024, 1, 1), None, date(2024, 1, 2)], "shop": ["a b", "ü/x", "c"]})
    write_deltalake(place, rows, partition_by=["day", "shop"])
    t.attach_table("sales", str(place))
    assert contents(t, "sales") == [(1, date(2024, 1, 1), "a b"), (2, None, "ü/x"), (3, date(2024, 1, 2), "c")]
    t.sql("CREATE STREAM TABLE s WITH (partition_by = 'shop') AS SELECT shop, max(day) AS day FROM sales GROUP BY shop")
    DeltaTable(place).delete("shop = 'c'")
    refreshed(t, "s")
    assert contents(t, "s") == [("a b", date(2024, 1, 1)), ("ü/x", None)]


def test_deletion_vectors_hide_rows_without_a_new_file(t: Trickle, tmp_path: Path) -> None:
    foreign = ForeignTable(tmp_path / "events", "id long", features=["deletionVectors"])
    foreign.write("one.parquet", {"id": [1, 2, 3, 4]})
    foreign.commit(add("one.parquet", rows=4))
    t.attach_table("events", foreign.root)
    t.sql("CREATE STREAM TABLE s AS SELECT id FROM events")
    first, second = inline_vector([0]), inline_vector([0, 2])
    foreign.commit(remove("one.parquet"), add("one.parquet", rows=4, vector=first))
    assert refreshed(t, "s").action == "FULL"
    assert contents(t, "s") == [(2,), (3,), (4,)]
    foreign.commit(remove("one.parquet", vector=first), add("one.parquet", rows=4, vector=second))
    refreshed(t, "s")
    assert contents(t, "s") == [(2,), (4,)]
    assert differences(t, "events", 1) == [(1, -1), (3, -1)]


def test_a_table_with_an_unknown_feature_is_refused_by_its_name(t: Trickle, tmp_path: Path) -> None:
    on = {"delta.columnMapping.mode": "name"}
    foreign = ForeignTable(tmp_path / "mapped", "id long", features=["columnMapping"], properties=on)
    with pytest.raises(UnsupportedTable, match="columnMapping"):
        t.attach_table("mapped", foreign.root)
    assert t.tables() == []


def test_only_reading_is_allowed(t: Trickle, tmp_path: Path) -> None:
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"id": [1]}))
    t.attach_table("shop.events", place)
    before = inventory(t)
    refused(t, "INSERT INTO shop.events VALUES (2)", WrongKind, "is an attached table", hint="only read here")
    refused(t, "DELETE FROM shop.events WHERE id = 1", WrongKind, "is an attached table")
    refused(t, "ALTER TABLE shop.events ADD COLUMN x INT", WrongKind, "shop.events is not a base table")
    for call in (t.compact, t.vacuum):
        with pytest.raises(WrongKind):
            call("shop.events")
    assert inventory(t) == before
    t.sql("DROP TABLE shop.events")
    assert DeltaTable(place).to_pyarrow_table().num_rows == 1


def test_what_is_no_delta_table_or_has_no_free_name_is_refused(t: Trickle, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "events", pa.table({"id": [1]}))
    t.attach_table("events", tmp_path / "events")
    before = inventory(t)
    with pytest.raises(UnknownTable, match="nothing"):
        t.attach_table("other", tmp_path / "nothing")
    with pytest.raises(DuplicateName, match="events"):
        t.attach_table("EVENTS", tmp_path / "events")
    with pytest.raises(InvalidOption, match="system schema"):
        t.attach_table("trickle.events", tmp_path / "events")
    assert inventory(t) == before


def test_a_table_that_was_written_anew_is_noticed(t: Trickle, tmp_path: Path) -> None:
    """The new table has the same versions; only its commits are others."""
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"id": [1, 2]}))
    t.attach_table("events", place)
    t.sql("CREATE STREAM TABLE s AS SELECT id FROM events; CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    version = state(t, "s").version
    assert version is not None
    shutil.rmtree(place)
    write_deltalake(place, pa.table({"id": [2, 3, 4]}))
    refreshed(t, "s", "n")
    assert contents(t, "s") == [(2,), (3,), (4,)]
    assert differences(t, "s", version) == [(1, -1), (3, 1), (4, 1)]
    assert contents(t, "n") == [(3,)]
