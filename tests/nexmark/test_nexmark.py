"""Queries in the shape of Nexmark's q0 to q8, kept by changes over sustained changes."""

from __future__ import annotations

import pytest

from tests.nexmark.auctions import QUERIES, House
from trickle import Trickle
from trickle.testing import check

BATCHES = 4


@pytest.mark.timeout(600)
def test_nine_queries_follow_an_auction_house(t: Trickle) -> None:
    house = House(seed=7)
    house.open(t)
    for name, text in QUERIES.items():
        t.create_stream_table(name, text, refresh_mode="DIFFERENTIAL")
    check(t)
    changed = 0
    for _ in range(BATCHES):
        house.batch(t)
        for name in QUERIES:
            done = t.refresh_stream_table(name)
            assert done.action in ("DIFFERENTIAL", "NO_DATA"), f"{name}: {done.reason}"
            changed += done.rows_inserted + done.rows_deleted
        check(t)
    assert changed > 0
