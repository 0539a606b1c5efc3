"""A clock that moves when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trickle.testing import FakeClock


def test_it_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
    assert clock.now() == clock.now() == datetime(2026, 5, 1, tzinfo=UTC)
    clock.advance(timedelta(hours=1))
    assert clock.now() == datetime(2026, 5, 1, 1, tzinfo=UTC)


def test_it_begins_somewhere_with_a_time_zone() -> None:
    assert FakeClock().now().tzinfo is UTC
