"""Queries of TPC-H whose changes are taken for more than the driver holds: Spark keeps what is computed from them."""

from __future__ import annotations

import pytest

from tests.scenarios.big import take_changes_for_large
from tests.tpch.story import CYCLES, SCALE, keep, load
from trickle import Trickle

TOGETHER = (CYCLES[0], CYCLES[1] + CYCLES[2], CYCLES[3] + CYCLES[4], CYCLES[5])
"""Some cycles come together, which makes the changes larger still. What one brings and the next takes away does not."""


@pytest.mark.timeout(7200 if SCALE > 0.01 else 900)
@pytest.mark.parametrize("hinted, queries", [(True, ("q02", "q13", "q20")), (False, ("q16", "q18", "q22"))])
def test_queries_with_large_changes_equal_recomputation(
    t: Trickle, monkeypatch: pytest.MonkeyPatch, hinted: bool, queries: tuple[str, ...]
) -> None:
    take_changes_for_large(monkeypatch, hinted=hinted)
    load(t, SCALE)
    keep(t, queries, TOGETHER)
