"""One pass gives what the definition gives."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.stats.welford import Welford, spread

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@given(numbers)
def test_one_pass_gives_mean_and_deviation_of_the_sample(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    assert found.sigma == pytest.approx(deviation, rel=1e-6, abs=1e-6)


@given(st.floats(1e12, 1e15), st.integers(2, 30))
def test_large_numbers_that_do_not_differ_have_no_deviation(value: float, count: int) -> None:
    found = spread([value] * count)
    assert found is not None
    assert found.sigma <= value * 1e-12


def test_small_differences_of_large_numbers_are_not_lost() -> None:
    found = spread([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])
    assert found is not None
    assert found.sigma == pytest.approx(30**0.5)


def test_nothing_has_no_mean_and_one_number_no_deviation() -> None:
    assert spread([]) is None
    assert Welford().add(7).sigma == 0
