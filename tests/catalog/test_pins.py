from __future__ import annotations

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, Kind, pins, relations
from trickle.errors import ConcurrentModification


def test_a_pin_shows_nothing_until_it_is_moved(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders", Kind.REPLICA).id
        assert pins.find(tx, orders) is None
        made = pins.add(tx, orders, given.now)
        assert (made.version, made.number, made.position) == (None, 0, None)
        pins.move(tx, orders, version=3, number=1, position="trigger:5:5:", now=given.now)
    with catalog.write() as tx:
        held = pins.lock(tx, orders)
        assert (held.version, held.number, held.position) == (3, 1, "trigger:5:5:")
        assert pins.of(tx) == {orders: held}
        assert pins.of(tx, []) == {}


def test_a_pin_goes_with_its_relation(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders", Kind.REPLICA).id
        pins.add(tx, orders, given.now)
        relations.remove(tx, orders)
        assert pins.of(tx) == {}
        with pytest.raises(ConcurrentModification):
            pins.lock(tx, orders)
        with pytest.raises(ConcurrentModification):
            pins.move(tx, orders, version=1, number=1, position=None, now=given.now)
