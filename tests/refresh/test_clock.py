"""Queries that read the clock are kept by changes: rows come and go by time alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import trickle
from trickle import Trickle
from trickle.engine import Engine
from trickle.errors import UnsupportedQuery
from trickle.testing import FakeClock, check

START = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def events(engine: Engine, tmp_path: Path, clock: FakeClock) -> Iterator[Trickle]:
    """Four events around the start, one of them still to come."""
    with trickle.connect(tmp_path / "wh", spark=engine.spark, clock=clock) as t:
        t.sql("CREATE TABLE e (id BIGINT, at TIMESTAMP, v INT)")
        t.sql(
            "INSERT INTO e VALUES (1, TIMESTAMP'2026-01-01 00:00:00Z', 1), (2, TIMESTAMP'2026-01-05 00:00:00Z', 2),"
            " (3, TIMESTAMP'2026-01-09 00:00:00Z', 3), (4, TIMESTAMP'2026-01-12 00:00:00Z', 4)"
        )
        yield t


def test_rows_enter_and_leave_a_window_of_time(events: Trickle, clock: FakeClock) -> None:
    week = "SELECT id, v FROM e WHERE at > current_timestamp() - INTERVAL 7 DAYS AND at <= now()"
    events.create_stream_table("week", week, refresh_mode="DIFFERENTIAL")
    check(events)
    clock.advance(timedelta(days=3))
    done = events.refresh_stream_table("week")
    assert (done.action, done.rows_inserted, done.rows_deleted) == ("DIFFERENTIAL", 1, 1)
    check(events)
    clock.advance(timedelta(days=3))
    events.sql("INSERT INTO e VALUES (9, TIMESTAMP'2026-01-11 00:00:00Z', 9); DELETE FROM e WHERE id = 3")
    events.refresh_stream_table("week")
    check(events)
    assert sorted(row.id for row in events.table("week").collect()) == [4, 9]


def test_an_aggregate_over_a_window_of_time(events: Trickle, clock: FakeClock) -> None:
    total = "SELECT count(*) AS n, sum(v) AS total FROM e WHERE at > current_timestamp() - INTERVAL 7 DAYS"
    events.create_stream_table("total", total, refresh_mode="DIFFERENTIAL")
    for _ in range(3):
        clock.advance(timedelta(days=3))
        assert events.refresh_stream_table("total").action == "DIFFERENTIAL"
        check(events)
    assert [tuple(row) for row in events.table("total").collect()] == [(0, None)]


def test_a_value_that_depends_on_the_day(events: Trickle, clock: FakeClock) -> None:
    events.create_stream_table("ages", "SELECT id, datediff(current_date(), at) AS age FROM e")
    clock.advance(timedelta(days=1))
    events.refresh_stream_table("ages")
    check(events)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n, current_date() AS day FROM e",
        "SELECT v % 2 AS odd, count(*) AS n, current_date() AS day FROM e GROUP BY v % 2",
        "SELECT id, datediff(current_date(), at) AS age FROM e ORDER BY id LIMIT 2",
        "SELECT DISTINCT v % 2 AS odd, current_date() AS day FROM e",
    ],
)
def test_a_value_that_depends_on_the_day_above_groups_and_first_rows(
    events: Trickle, clock: FakeClock, query: str
) -> None:
    """Also of those that no change has touched."""
    events.create_stream_table("daily", query, refresh_mode="DIFFERENTIAL")
    for change in (
        "",
        "INSERT INTO e VALUES (5, TIMESTAMP'2026-01-02 00:00:00Z', 5)",
        "DELETE FROM e WHERE id = 1",
        "",
    ):
        clock.advance(timedelta(days=1))
        events.sql(change)
        assert events.refresh_stream_table("daily").action == "DIFFERENTIAL"
        check(events)


def test_chance_is_refused(events: Trickle) -> None:
    with pytest.raises(UnsupportedQuery, match="chance"):
        events.create_stream_table("dice", "SELECT id, rand() AS r FROM e", refresh_mode="DIFFERENTIAL")
