from __future__ import annotations

import pytest

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, relations, source_gates
from trickle.errors import ConcurrentModification


def test_a_gate_is_closed_once_and_opened_once(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        assert source_gates.find(tx, orders) is None
        assert source_gates.ungate(tx, orders, given.now) is False
        closed = source_gates.gate(tx, orders, "etl", "nightly load", given.now)
        assert (closed.gated, closed.gated_at, closed.gated_by, closed.reason) == (
            True,
            given.now,
            "etl",
            "nightly load",
        )
        assert closed.name == named("orders")
        # Who asks again learns since when it is closed, and changes nothing.
        assert source_gates.gate(tx, orders, "ada", "me too", given.later(5)) == closed
        assert source_gates.ungate(tx, orders, given.later(60)) is True
        assert source_gates.ungate(tx, orders, given.later(70)) is False
        [opened] = source_gates.listing(tx)
        assert (opened.gated, opened.gated_at, opened.ungated_at) == (False, given.now, given.later(60))
        again = source_gates.gate(tx, orders, "ada", None, given.later(80))
        assert (again.gated, again.gated_at, again.ungated_at, again.gated_by, again.reason) == (
            True,
            given.later(80),
            None,
            "ada",
            None,
        )


def test_a_gate_goes_with_its_source(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        source_gates.gate(tx, orders, "etl", None, given.now)
        relations.remove(tx, orders)
        assert source_gates.listing(tx) == []
    with pytest.raises(ConcurrentModification), catalog.write() as tx:
        source_gates.gate(tx, orders, "etl", None, given.now)
