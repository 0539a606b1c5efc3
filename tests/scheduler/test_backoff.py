"""How long to wait."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from trickle.scheduler.backoff import (
    FIRST_DELAY,
    LARGEST_FACTOR,
    LONGEST_DELAY,
    is_falling_behind,
    next_factor,
    retry_delay,
)

FIVE = timedelta(seconds=5)
durations = st.integers(1, 10**6).map(lambda ms: timedelta(milliseconds=ms))


@given(st.integers(-5, 10**6), st.floats(0, 1))
def test_a_retry_waits_at_least_half_of_the_doubled_delay_and_never_over_the_cap(attempt: int, jitter: float) -> None:
    found = retry_delay(attempt, jitter)
    assert FIRST_DELAY / 2 <= found <= LONGEST_DELAY
    assert retry_delay(attempt, 0.0) <= found <= retry_delay(attempt, 1.0)
    assert retry_delay(attempt, 1.0) == 2 * retry_delay(attempt, 0.0)


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_a_later_retry_waits_no_less(attempt: int, jitter: float) -> None:
    assert retry_delay(attempt, jitter) <= retry_delay(attempt + 1, jitter)


def test_a_table_that_cannot_keep_its_schedule_is_stretched_until_it_can() -> None:
    factor: float = 1
    seen = []
    for took in (8, 8, 18, 18, 100, 100, 8, 4):
        factor = next_factor(factor, timedelta(seconds=took), FIVE)
        seen.append(factor)
    # 8 s fit into twice 5 s and stay there; 18 s into four times; 100 s into nothing, up to the cap.
    assert seen == [2, 2, 4, 4, 8, 8, 8, 1]


@given(st.sampled_from([1, 2, 4, 8]), durations, durations)
def test_a_factor_stays_within_its_bounds_and_is_one_exactly_when_refreshes_fit(
    factor: int, took: timedelta, interval: timedelta
) -> None:
    found = next_factor(factor, took, interval)
    assert 1 <= found <= LARGEST_FACTOR
    assert (found == 1) == (took <= interval)
    assert found == LARGEST_FACTOR or took <= interval * found or found == 2 * factor


def test_eight_tenths_of_the_schedule_is_falling_behind() -> None:
    assert is_falling_behind(timedelta(seconds=4), FIVE)
    assert not is_falling_behind(timedelta(seconds=3.9), FIVE)
