"""Queries 1, 3, 5, ... of TPC-H, with rows looked up by indexes. The others are in a file of their own, without."""

from __future__ import annotations

import pytest

from tests.scenarios.big import index_all
from tests.tpch.story import QUERIES, SCALE, keep, load
from trickle import Trickle


@pytest.mark.timeout(7200 if SCALE > 0.01 else 900)
def test_the_odd_queries_equal_recomputation_through_all_cycles(t: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    index_all(monkeypatch)
    load(t, SCALE)
    keep(t, list(QUERIES)[0::2])
