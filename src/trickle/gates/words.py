"""How reasons tell times."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(at: datetime | None) -> str:
    """A point in time for the eye.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    '2026-01-02 03:04:05 UTC'
    """
    return "never" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def stamp(at: datetime | None) -> str | None:
    """A point in time for the details of a verdict, which are plain values."""
    return None if at is None else at.astimezone(UTC).isoformat()
