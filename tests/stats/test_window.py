"""Only the newest numbers count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trickle.stats.welford import spread
from trickle.stats.window import rolling

numbers = st.lists(st.integers(0, 10**9), max_size=40)


@given(numbers, st.integers(1, 50))
def test_a_window_sees_the_newest_numbers_and_nothing_else(values: list[int], size: int) -> None:
    assert rolling(values, size) == spread(values[max(len(values) - size, 0) :])


@given(numbers, numbers, st.integers(1, 10))
def test_what_has_left_the_window_is_forgotten(old: list[int], other: list[int], size: int) -> None:
    newest = list(range(size))
    assert rolling(old + newest, size) == rolling(other + newest, size)


def test_an_empty_window_says_nothing() -> None:
    assert rolling([], 5) is None
    assert rolling([1, 2], 0) is None
