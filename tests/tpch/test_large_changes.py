"""Queries of TPC-H whose changes are taken for more than the driver holds: Spark keeps what is computed from them. Two
cycles come together, which makes the changes larger still.
"""

from __future__ import annotations

import pytest

from tests.scenarios.big import take_changes_for_large
from tests.tpch.story import SCALE, keep, load
from trickle import Trickle


@pytest.mark.timeout(7200 if SCALE > 0.01 else 900)
@pytest.mark.parametrize("hinted, queries", [(True, ("q02", "q13", "q20")), (False, ("q16", "q18", "q22"))])
def test_queries_with_large_changes_equal_recomputation(
    t: Trickle, monkeypatch: pytest.MonkeyPatch, hinted: bool, queries: tuple[str, ...]
) -> None:
    take_changes_for_large(monkeypatch, hinted=hinted)
    load(t, SCALE)
    keep(t, queries, at_once=2)
