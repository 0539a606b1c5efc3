"""Queries 2, 4, 6, ... of TPC-H."""

from __future__ import annotations

import pytest

from tests.tpch.story import QUERIES, SCALE, keep, load
from trickle import Trickle


@pytest.mark.timeout(7200 if SCALE > 0.01 else 900)
def test_the_even_queries_equal_recomputation_through_all_cycles(t: Trickle) -> None:
    load(t, SCALE)
    keep(t, list(QUERIES)[1::2])
