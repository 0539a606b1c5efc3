"""Queries 1, 3, 5, ... of TPC-H. The others are in a file of their own, so that two workers share them."""

from __future__ import annotations

import pytest

from tests.tpch.story import QUERIES, SCALE, keep, load
from trickle import Trickle


@pytest.mark.timeout(7200 if SCALE > 0.01 else 900)
def test_the_odd_queries_equal_recomputation_through_all_cycles(t: Trickle) -> None:
    load(t, SCALE)
    keep(t, list(QUERIES)[0::2])
