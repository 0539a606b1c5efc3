"""Compaction, vacuum, the purge of history, and the changes of a table."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

import trickle
from tests.scenarios.story import ask, changed, contents, differences, folder, listed, refreshed, state, version_of
from trickle.api import Trickle
from trickle.engine import Engine
from trickle.errors import HistoryLost, InvalidOption, UnknownTable, WrongKind
from trickle.testing import FakeClock, check


def test_compaction_joins_files_and_nobody_sees_a_change(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT)")
    for number in range(4):
        t.sql(f"INSERT INTO a VALUES ({number})")
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM a; CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    before = version_of(t, "a")
    done = t.compact("a")
    assert (done.files_before, done.files_after, done.version) == (4, 1, before + 1)
    assert len(DeltaTable(str(folder(t, "a"))).file_uris()) == 1
    assert differences(t, "a", before) == []
    assert refreshed(t, "s").action == "NO_DATA"
    # A second time there is nothing to do.
    assert t.compact("a").version == before + 1
    assert contents(t, "a") == [(0,), (1,), (2,), (3,)]


def test_a_stream_table_is_compacted_too(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT, p INT); INSERT INTO a SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(8)")
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM a")
    t.sql("CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    t.sql("INSERT INTO a VALUES (0, 0)")
    refreshed(t, "s", "n")
    assert len(DeltaTable(str(folder(t, "s"))).file_uris()) > 1
    (done,) = listed(t, "CALL trickle.compact('s')")
    assert done["files_after"] == 1
    assert state(t, "s").version == done["version"]
    check(t)
    assert refreshed(t, "n").action == "NO_DATA"
    t.sql("DELETE FROM a WHERE x < 4")
    refreshed(t, "s", "n")
    assert contents(t, "n") == [(4,)]


def test_views_and_unknown_tables_have_nothing_to_compact_or_vacuum(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); CREATE VIEW v AS SELECT x FROM a")
    for call in (t.compact, t.vacuum):
        with pytest.raises(WrongKind):
            call("v")
        with pytest.raises(UnknownTable):
            call("nope")
    with pytest.raises(WrongKind, match="has no versions"):
        t.changes("v", 0)


def test_vacuum_keeps_what_a_frontier_needs(t: Trickle) -> None:
    t.sql("SET trickle.vacuum_retention_hours = 0")
    t.sql("CREATE TABLE a (x INT, y INT); INSERT INTO a VALUES (1, 1), (2, 2), (3, 3)")
    t.sql("CREATE STREAM TABLE s AS SELECT x, y FROM a; CREATE STREAM TABLE n AS SELECT sum(y) AS n FROM s")
    t.sql("UPDATE a SET y = 20 WHERE x = 2; DELETE FROM a WHERE x = 1; UPDATE a SET y = 30 WHERE x = 3")
    refreshed(t, "s")
    # Consumer n has not seen the change of s, nor s anything after this.
    t.sql("UPDATE a SET y = y + 1")
    assert t.vacuum(dry_run=True) == t.vacuum()
    check(t)
    assert refreshed(t, "n").action == "FULL"
    refreshed(t, "s", "n")
    assert contents(t, "s") == [(2, 21), (3, 31)]
    assert contents(t, "n") == [(52,)]


def test_vacuum_removes_what_nobody_needs_any_more(t: Trickle) -> None:
    t.sql("SET trickle.vacuum_retention_hours = 0")
    t.sql("CREATE TABLE a (x INT, y INT); INSERT INTO a VALUES (1, 1), (2, 2)")
    t.sql("CREATE STREAM TABLE s AS SELECT x, y FROM a")
    for _ in range(2):
        t.sql("UPDATE a SET y = y + 1")
        refreshed(t, "s")
    live = {Path(uri) for name in ("a", "s") for uri in DeltaTable(str(folder(t, name))).file_uris()}
    removed = {Path(path) for path in t.vacuum()}
    assert removed
    assert not removed & live
    assert {path for name in ("a", "s") for path in folder(t, name).rglob("*.parquet")} == live
    with pytest.raises(HistoryLost, match="a data file is gone"):
        contents(t, "a", version=1)
    check(t)
    t.sql("DELETE FROM a WHERE x = 1")
    refreshed(t, "s")
    assert contents(t, "s") == [(2, 4)]


def test_vacuum_keeps_young_files(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1); DELETE FROM a WHERE x = 1")
    assert t.vacuum() == []
    assert t.vacuum("a") == []
    assert contents(t, "a", version=1) == [(1,)]


def test_vacuum_purges_history_past_its_retention(engine: Engine, tmp_path: Path) -> None:
    clock = FakeClock()
    with trickle.connect(tmp_path / "wh", spark=engine.spark, clock=clock) as t:
        t.sql("SET trickle.history_retention_days = 10; CREATE TABLE a (x INT)")
        t.sql("CREATE STREAM TABLE s AS SELECT x FROM a")
        clock.advance(timedelta(days=8))
        t.refresh_stream_table("s")
        clock.advance(timedelta(days=3))
        t.vacuum("a")
        t.vacuum(dry_run=True)
        assert len(t.refresh_history("s")) == 2
        t.vacuum()
        assert [row.initiated_by for row in t.refresh_history("s")] == ["MANUAL"]


def test_changes_of_a_table_between_versions(t: Trickle) -> None:
    t.sql("CREATE TABLE a (x INT, y STRING)")
    t.sql(
        "INSERT INTO a VALUES (1, 'a'), (2, 'b'), (2, 'b'); UPDATE a SET y = 'c' WHERE x = 1; DELETE FROM a WHERE x = 2"
    )
    assert differences(t, "a", 0) == [(1, "c", 1)]
    assert differences(t, "a", 1) == [(1, "a", -1), (1, "c", 1), (2, "b", -2)]
    rows = t.changes("a", 0, 1).toArrow().to_pylist()
    assert sorted(row["__trickle_weight"] for row in rows) == [1, 2]
    assert differences(t, "a", 3) == []
    for since, until in ((3, 1), (-1, None), (4, None), (0, 4)):
        with pytest.raises(InvalidOption, match="a has no changes from version"):
            t.changes("a", since, until)
    assert changed(t, "INSERT OVERWRITE a SELECT 1, 'c'") == (1, 1)
    assert differences(t, "a", 3) == []
    assert ask(t, "SELECT count(*) FROM a") == [(1,)]
