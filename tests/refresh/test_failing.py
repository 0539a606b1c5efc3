"""Refreshes that fail: counted, told, and in the end the stream table is suspended."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.scenarios.story import contents, folder, refreshed, state
from trickle.api import Trickle
from trickle.errors import QueryError, Suspended, TrickleError, UnknownTable
from trickle.testing import check


@pytest.fixture
def ratios(t: Trickle) -> Trickle:
    t.sql("CREATE TABLE a (x INT); INSERT INTO a VALUES (1), (2)")
    t.sql("CREATE STREAM TABLE s AS SELECT x, 10 / x AS q FROM a")
    return t


def fail(t: Trickle, name: str = "s") -> TrickleError:
    with pytest.raises(QueryError, match="division by zero") as caught:
        t.refresh_stream_table(name)
    return caught.value


def test_errors_count_up_until_the_stream_table_is_suspended(ratios: Trickle) -> None:
    t = ratios
    rows, version = contents(t, "s"), state(t, "s").version
    files = sorted(folder(t, "s").rglob("*"))
    t.sql("INSERT INTO a VALUES (0)")
    for count, status in ((1, "ERROR"), (2, "ERROR"), (3, "SUSPENDED")):
        error = fail(t)
        row = state(t, "s")
        assert (row.status, row.consecutive_errors, row.last_error) == (status, count, str(error))
        assert (row.version, row.populated) == (version, True)
    assert contents(t, "s") == rows
    assert sorted(folder(t, "s").rglob("*")) == files
    newest = t.refresh_history("s")[0]
    assert (newest.action, newest.status, newest.error_code) == ("FULL", "FAILED", "QUERY_ERROR")
    assert "division by zero" in (newest.error_message or "")
    assert newest.ended_at is not None
    assert (newest.version_before, newest.version_after) == (version, None)
    alerts = t.alerts()
    assert [(a.event, a.severity, a.name) for a in alerts] == [
        ("auto_suspended", "ERROR", "s"),
        ("refresh_failed", "ERROR", "s"),
        ("refresh_failed", "ERROR", "s"),
    ]
    assert json.loads(alerts[0].payload)["consecutive_errors"] == 3
    with pytest.raises(Suspended, match="s is suspended"):
        t.refresh_stream_table("s")
    assert len(t.refresh_history("s")) == 4


def test_resume_forgets_the_errors(ratios: Trickle) -> None:
    t = ratios
    t.sql("SET trickle.max_consecutive_errors = 1; INSERT INTO a VALUES (0)")
    fail(t)
    assert state(t, "s").status == "SUSPENDED"
    row = t.resume_stream_table("s")
    assert (row.status, row.consecutive_errors) == ("ACTIVE", 0)
    fail(t)
    t.sql("DELETE FROM a WHERE x = 0; CALL trickle.resume_stream_table('s')")
    assert refreshed(t, "s").action == "FULL"
    assert (state(t, "s").status, state(t, "s").consecutive_errors) == ("ACTIVE", 0)


def test_one_success_ends_the_count(ratios: Trickle) -> None:
    t = ratios
    t.sql("INSERT INTO a VALUES (0)")
    fail(t)
    t.sql("UPDATE a SET x = 4 WHERE x = 0")
    refreshed(t, "s")
    row = state(t, "s")
    assert (row.status, row.consecutive_errors) == ("ACTIVE", 0)
    t.sql("INSERT INTO a VALUES (0)")
    fail(t)
    assert state(t, "s").consecutive_errors == 1


def test_force_refreshes_a_suspended_stream_table(ratios: Trickle) -> None:
    ratios.suspend_stream_table("s")
    result = ratios.refresh_stream_table("s", force=True)
    check(ratios)
    assert result.action == "FULL"


def test_a_source_that_cannot_be_reached_is_a_failed_refresh_too(t: Trickle, tmp_path: Path) -> None:
    place = tmp_path / "events"
    write_deltalake(place, pa.table({"id": [1, 2]}))
    t.attach_table("events", place)
    t.sql("CREATE STREAM TABLE s AS SELECT id FROM events")
    place.rename(tmp_path / "away")
    with pytest.raises(UnknownTable, match="events"):
        t.refresh_stream_table("s")
    assert contents(t, "s") == [(1,), (2,)]
    newest = t.refresh_history("s")[0]
    assert (newest.status, newest.error_code) == ("FAILED", "UNKNOWN_TABLE")
    assert (state(t, "s").status, state(t, "s").consecutive_errors) == ("ERROR", 1)
    # When it is there again, as it was, there is nothing to compute and nothing wrong any more.
    (tmp_path / "away").rename(place)
    assert refreshed(t, "s").action == "NO_DATA"
    assert (state(t, "s").status, state(t, "s").consecutive_errors) == ("ACTIVE", 0)


def test_what_reads_a_failing_stream_table_keeps_its_last_good_state(ratios: Trickle) -> None:
    t = ratios
    t.sql("CREATE STREAM TABLE above AS SELECT sum(q) AS q FROM s")
    t.sql("INSERT INTO a VALUES (0)")
    fail(t)
    assert refreshed(t, "above").action == "NO_DATA"
    assert contents(t, "above") == [(15.0,)]
    assert (state(t, "above").status, state(t, "s").status) == ("ACTIVE", "ERROR")


def test_dropping_a_suspended_stream_table(ratios: Trickle) -> None:
    t = ratios
    t.sql("SET trickle.max_consecutive_errors = 1; INSERT INTO a VALUES (0)")
    fail(t)
    assert t.drop_stream_table("s") == ["s"]
    assert t.status() == []
