"""A refresh: what it does, what it says, and what consumers see of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

import trickle
from tests.scenarios.story import changed, contents, differences, folder, refreshed, refused, state, version_of
from trickle.algebra.names import TableName
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.catalog.records import Initiator
from trickle.engine import Engine
from trickle.errors import QueryError, SchemaDrift, UnknownTable, WrongKind
from trickle.refresh.execute import refresh
from trickle.testing import FakeClock, check


@pytest.fixture
def numbers(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE numbers (x INT, y INT); INSERT INTO numbers VALUES (1, 10), (2, 20), (2, 20), (NULL, 5)")
    return t


def test_history_tells_the_whole_story(engine: Engine, tmp_path: Path) -> None:
    clock = FakeClock()
    with trickle.connect(tmp_path / "wh", spark=engine.spark, clock=clock) as t:
        t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1), (2)")
        born = clock.now()
        t.sql("CREATE STREAM TABLE s AS SELECT x FROM a; CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
        clock.advance(timedelta(minutes=1))
        t.refresh_stream_table("s")
        clock.advance(timedelta(minutes=1))
        t.sql("UPDATE a SET x = 9 WHERE x = 1; INSERT INTO a VALUES (3)")
        result = t.refresh_stream_table("s")
        told = [
            (
                r.action,
                r.status,
                r.initiated_by,
                r.reason,
                r.rows_inserted,
                r.rows_deleted,
                r.version_before,
                r.version_after,
            )
            for r in reversed(t.refresh_history("s"))
        ]
        ratio = "3 of 3 rows changed, 100.0%; the threshold is 15.0%"
        assert told == [
            ("FULL", "COMPLETED", "INITIAL", "first fill", 2, 0, None, 1),
            ("NO_DATA", "COMPLETED", "MANUAL", "no source has changed", 0, 0, 1, 1),
            ("FULL", "COMPLETED", "MANUAL", f"changed: a; in full, as {ratio}", 2, 1, 1, 2),
        ]
        newest, idle, first = t.refresh_history("s")
        assert (first.started_at, first.ended_at) == (born, born)
        assert idle.started_at == born + timedelta(minutes=1)
        assert newest.started_at == newest.ended_at == born + timedelta(minutes=2)
        assert newest.duration_ms == 0
        assert (newest.error_code, newest.error_message) == (None, None)
        assert (result.rows_inserted, result.rows_deleted, result.version) == (2, 1, 2)
        assert state(t, "s").data_timestamp == born + timedelta(minutes=2)
        assert state(t, "s").last_refresh_at == born + timedelta(minutes=2)
        assert [r.name for r in t.refresh_history(limit=2)] == ["s", "s"]
        assert {r.name for r in t.refresh_history()} == {"s", "n"}


def test_an_idle_refresh_starts_no_spark_job(numbers: Trickle) -> None:
    numbers.sql("CREATE VIEW v AS SELECT y FROM numbers")
    numbers.sql("CREATE STREAM TABLE s AS SELECT sum(y) AS y FROM v; CREATE STREAM TABLE n AS SELECT y FROM s")
    with numbers.warehouse.engine.count_jobs() as count:
        results = [numbers.refresh_stream_table(name) for name in ("s", "n")]
    assert [r.action for r in results] == ["NO_DATA", "NO_DATA"]
    assert [r.spark_jobs for r in results] == [0, 0]
    assert count.jobs == 0


@pytest.mark.portable
def test_consumers_of_a_full_refresh_see_the_difference_only(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE doubled AS SELECT x, y * 2 AS y FROM numbers")
    t.sql("CREATE STREAM TABLE total AS SELECT sum(y) AS y FROM doubled")
    before = state(t, "doubled").version
    assert before is not None
    t.sql("DELETE FROM numbers WHERE x = 1; INSERT INTO numbers VALUES (2, 20), (7, 70)")
    result = refreshed(t, "doubled")
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("FULL", 2, 1)
    assert differences(t, "doubled", before) == [(1, 20, -1), (2, 40, 1), (7, 140, 1)]
    assert refreshed(t, "total").reason.startswith("changed: doubled")
    assert contents(t, "total") == [(40 * 3 + 10 + 140,)]


def test_an_unchanged_result_is_no_new_version(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE largest AS SELECT max(y) AS y FROM numbers")
    t.sql("CREATE STREAM TABLE after AS SELECT y + 1 AS y FROM largest")
    before = version_of(t, "largest")
    t.sql("INSERT INTO numbers VALUES (3, 3)")
    result = refreshed(t, "largest")
    assert (result.action, result.rows_inserted, result.rows_deleted, result.version) == ("FULL", 0, 0, before)
    assert version_of(t, "largest") == before
    assert refreshed(t, "after").action == "NO_DATA"
    # The frontier moved all the same.
    assert refreshed(t, "largest").action == "NO_DATA"
    assert [p.name for p in folder(t, "largest").iterdir() if p.name.startswith("data-")] == [
        Path(uri).parent.name for uri in DeltaTable(str(folder(t, "largest"))).file_uris()
    ]


def test_a_change_that_nets_to_nothing(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE s AS SELECT x, y FROM numbers; CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    before = version_of(t, "s")
    t.sql("INSERT INTO numbers VALUES (8, 8); DELETE FROM numbers WHERE x = 8")
    refreshed(t, "s")
    assert version_of(t, "s") == before
    assert refreshed(t, "n").action == "NO_DATA"


def test_everything_goes_and_comes_back(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE s AS SELECT x, y FROM numbers; CREATE STREAM TABLE n AS SELECT count(*) AS n FROM s")
    t.sql("TRUNCATE TABLE numbers")
    assert refreshed(t, "s").rows_deleted == 4
    refreshed(t, "n")
    assert contents(t, "n") == [(0,)]
    t.sql("INSERT INTO numbers VALUES (1, 1)")
    assert refreshed(t, "s").rows_inserted == 1
    refreshed(t, "n")
    assert contents(t, "n") == [(1,)]


def test_force_computes_without_a_change(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM numbers")
    result = t.refresh_stream_table("s", force=True)
    assert (result.action, result.reason) == ("FULL", "forced")
    t.sql("REFRESH STREAM TABLE s FORCE")
    check(t)
    assert [r.reason for r in t.refresh_history("s")] == ["forced", "forced", "first fill"]


def test_a_query_that_depends_on_time_is_always_computed(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE now AS SELECT x, current_timestamp() AS at FROM numbers")
    t.sql("CREATE STREAM TABLE dice AS SELECT rand() AS r")
    first = contents(t, "now")
    result = t.refresh_stream_table("now")
    assert result.action == "DIFFERENTIAL"
    assert result.reason.startswith("the query depends on time or chance")
    assert contents(t, "now") != first
    assert t.refresh_stream_table("dice").action == "FULL"


def test_a_star_keeps_the_columns_it_was_created_with(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE s AS SELECT * FROM numbers WHERE x > 0")
    t.sql("ALTER TABLE numbers ADD COLUMN z STRING; INSERT INTO numbers VALUES (5, 50, 'new')")
    refreshed(t, "s")
    assert [c.name for c in t.describe("s")] == ["x", "y"]
    assert contents(t, "s") == [(1, 10), (2, 20), (2, 20), (5, 50)]
    # Defined anew, it takes the new column in.
    t.create_or_replace_stream_table("s", "SELECT * FROM numbers WHERE x >= 1")
    check(t)
    assert [c.name for c in t.describe("s")] == ["x", "y", "z"]


def test_a_source_of_another_shape_stops_the_refresh_with_what_changed(t: Trickle, tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    place = tmp_path / "events"
    write_deltalake(place, pa.table({"id": [1], "kind": ["a"]}))
    t.attach_table("events", place)
    t.sql("CREATE STREAM TABLE s AS SELECT id, kind FROM events")
    write_deltalake(place, pa.table({"id": ["x"], "kind": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaDrift, match="no longer gives the columns") as caught:
        t.refresh_stream_table("s")
    assert caught.value.detail == "column 'id' was bigint and is now string"
    assert "CREATE OR REPLACE STREAM TABLE s" in (caught.value.hint or "")
    assert contents(t, "s") == [(1, "a")]
    assert state(t, "s").status == "ERROR"
    t.create_or_replace_stream_table("s", "SELECT id, kind, 1 AS n FROM events")
    check(t)
    assert (contents(t, "s"), state(t, "s").status) == ([("x", "a", 1)], "ACTIVE")


def test_refresh_of_what_is_no_stream_table(numbers: Trickle) -> None:
    refused(numbers, "REFRESH STREAM TABLE nope", UnknownTable, "no stream table is called nope")
    refused(numbers, "REFRESH STREAM TABLE numbers", WrongKind, "numbers")


@pytest.mark.portable
def test_a_unit_is_refreshed_together_in_the_order_of_its_dependencies(numbers: Trickle) -> None:
    t = numbers
    t.sql(
        "CREATE STREAM TABLE low AS SELECT x, y FROM numbers; CREATE STREAM TABLE high AS SELECT sum(y) AS y FROM low"
    )
    t.sql("UPDATE numbers SET y = y + 1 WHERE x = 2")
    names = [TableName.of([name]) for name in ("high", "low")]
    results = refresh(t.warehouse, names, initiated_by=Initiator.SCHEDULER)
    check(t)
    assert [(r.name, r.action) for r in results] == [("low", "FULL"), ("high", "DIFFERENTIAL")]
    assert contents(t, "high") == [(10 + 21 + 21 + 5,)]
    assert {r.initiated_by for r in t.refresh_history(limit=2)} == {"SCHEDULER"}
    assert {r.action for r in refresh(t.warehouse, names)} == {"NO_DATA"}


def test_a_unit_that_fails_changes_none_of_its_members(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE low AS SELECT x, y FROM numbers")
    t.sql("CREATE STREAM TABLE high AS SELECT 100 / y AS q FROM low WHERE y IS NOT NULL")
    before = [contents(t, name) for name in ("low", "high")]
    versions = [version_of(t, name) for name in ("low", "high")]
    t.sql("INSERT INTO numbers VALUES (0, 0)")
    with pytest.raises(QueryError, match="division by zero"):
        refresh(t.warehouse, [TableName.of(["low"]), TableName.of(["high"])])
    assert [contents(t, name) for name in ("low", "high")] == before
    assert [version_of(t, name) for name in ("low", "high")] == versions
    high, low = t.refresh_history(limit=2)
    assert (low.name, low.status, low.error_code) == ("low", "FAILED", "ROLLED_BACK")
    assert (high.name, high.status, high.error_code) == ("high", "FAILED", "QUERY_ERROR")
    # Only the culprit is in error.
    assert (state(t, "low").status, state(t, "high").status) == ("ACTIVE", "ERROR")
    refreshed(t, "low")
    t.sql("DELETE FROM numbers WHERE y = 0")
    refreshed(t, "low", "high")
    assert state(t, "high").status == "ACTIVE"


def test_internal_columns_are_hidden_everywhere(numbers: Trickle) -> None:
    t = numbers
    t.sql("CREATE STREAM TABLE s AS SELECT x FROM numbers; CREATE STREAM TABLE n AS SELECT * FROM s")
    assert changed(t, "UPDATE numbers SET y = 0") == (4, 4)
    refreshed(t, "s", "n")
    for columns in (t.table("s").columns, t.table("n").columns, [c.name for c in t.describe("s")]):
        assert columns == ["x"]


def test_what_another_process_carries_out_meanwhile_is_done_once(numbers: Trickle, engine: Engine) -> None:
    """Decided here, rolled forward there, then here as well: with tables that were opened before."""
    t = numbers
    t.create_stream_table("s", "SELECT x, count(*) AS n FROM numbers GROUP BY x", refresh_mode="DIFFERENTIAL")
    t.sql("INSERT INTO numbers VALUES (2, 1), (7, 1)")

    def meanwhile(step: Step, _member: int) -> None:
        if step is Step.INTENT_WRITTEN:
            observe(None)
            # Whoever connects carries out what others decided and left.
            trickle.connect(t.warehouse.root.uri, spark=engine.spark).close()
            assert version_of(t, "s") == before + 1

    before = version_of(t, "s")
    observe(meanwhile)
    try:
        t.refresh_stream_table("s")
    finally:
        observe(None)
    assert version_of(t, "s") == before + 1
    check(t)
    t.sql("DELETE FROM numbers WHERE x = 7")
    t.refresh_stream_table("s")
    check(t)
