"""How long to wait: before a transient error is tried again, and between refreshes that take too long (pure)."""

from __future__ import annotations

from datetime import timedelta

FIRST_DELAY = timedelta(milliseconds=500)
LONGEST_DELAY = timedelta(seconds=60)
LARGEST_FACTOR = 8
BEHIND = 0.8
"""The share of its schedule that a refresh may take before a stream table is said to fall behind."""


def retry_delay(attempt: int, jitter: float) -> timedelta:
    """The time before a try after ``attempt`` failed ones: doubling, capped, and between half and whole of that.

    ``jitter`` is within 0 and 1 and comes from outside; without it, all that failed together come back together.

    >>> [retry_delay(attempt, jitter=1.0).total_seconds() for attempt in (1, 2, 3, 20)]
    [0.5, 1.0, 2.0, 60.0]
    """
    # Far beyond the cap the doubling stops, before it overflows.
    doublings = min(max(attempt, 1) - 1, 32)
    whole = min(FIRST_DELAY * (1 << doublings), LONGEST_DELAY)
    return whole * (0.5 + 0.5 * min(max(jitter, 0.0), 1.0))


def next_factor(factor: float, took: timedelta, interval: timedelta) -> float:
    """What a schedule is stretched by after a refresh that took so long.

    It doubles while refreshes do not even fit into the stretched schedule, and stays where they do; it is 1 again when
    they fit into the schedule itself. Going back as soon as they fit the stretched one would swing to and fro.

    >>> next_factor(1, took=timedelta(seconds=8), interval=timedelta(seconds=5))
    2
    """
    if took <= interval:
        return 1
    return min(factor * 2, LARGEST_FACTOR) if took > interval * factor else factor


def is_falling_behind(took: timedelta, interval: timedelta) -> bool:
    """Whether a refresh takes so much of its schedule that it soon will not keep it."""
    return took >= interval * BEHIND
