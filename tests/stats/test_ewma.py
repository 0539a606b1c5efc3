"""Weights that fade, against the weights written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.stats.ewma import fading, share_of

numbers = st.lists(st.integers(0, 10**6), min_size=1, max_size=30)


@given(numbers, st.integers(2, 50))
def test_mean_and_deviation_are_those_under_fading_weights(values: list[int], size: int) -> None:
    share = share_of(size)
    last = len(values) - 1
    weights = [(1 - share) ** last] + [share * (1 - share) ** (last - n) for n in range(1, len(values))]
    assert sum(weights) == pytest.approx(1)
    mean = sum(w * v for w, v in zip(weights, values, strict=True))
    variance = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True))
    found = fading(values, size)
    assert found is not None
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-6)
    assert found.sigma == pytest.approx(variance**0.5, rel=1e-6, abs=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 50))
def test_numbers_that_do_not_differ_have_no_deviation(value: int, count: int, size: int) -> None:
    found = fading([value] * count, size)
    assert found is not None
    assert (found.mean, found.sigma) == (value, 0)


def test_a_new_level_is_soon_the_usual_one() -> None:
    found = fading([100] * 20 + [1000] * 20, window_size=10)
    assert found is not None
    assert found.mean > 980


def test_nothing_has_no_mean() -> None:
    assert fading([], 5) is None
