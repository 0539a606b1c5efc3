from __future__ import annotations

import pytest

from tests.catalog.given import Given, named
from trickle.catalog import Catalog, fuses, relations
from trickle.catalog.records import FuseReset, FuseState
from trickle.errors import ConcurrentModification, InvalidOption

WHY = "delta 85432 exceeds adaptive threshold 2221"


def test_a_source_gets_a_rating_and_another_one(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "Orders").id
        assert fuses.find(tx, orders) is None
        first = fuses.put_rating(tx, orders, mode="adaptive", sensitivity=2.5, baseline="ewma", now=given.now)
        assert (first.mode, first.state, first.sensitivity, first.baseline) == ("adaptive", "ARMED", 2.5, "ewma")
        assert first.name == named("orders")
        second = fuses.put_rating(tx, orders, mode="fixed", ceiling=10**12, max_ratio=0.5, now=given.later(1))
        assert (second.mode, second.ceiling, second.max_ratio) == ("fixed", 10**12, 0.5)
        assert (second.sensitivity, second.window_size, second.baseline) == (None, None, None)
        assert fuses.remove(tx, orders) is True
        assert fuses.remove(tx, orders) is False


@pytest.mark.parametrize(
    "rating, complaint",
    [
        ({"mode": "FIXED"}, "no fuse mode 'FIXED'"),
        ({"mode": "fixed", "ceiling": 0}, "ceiling of a fuse is above 0, not 0"),
        ({"mode": "fixed", "max_ratio": -0.1}, "max_ratio"),
        ({"mode": "adaptive", "sensitivity": 0.0}, "sensitivity"),
        ({"mode": "adaptive", "window_size": 1}, "at least 2, not 1"),
        ({"mode": "adaptive", "baseline": "median"}, "fuse baselines: window, ewma"),
    ],
)
def test_a_rating_that_cannot_be_is_refused(catalog: Catalog, given: Given, rating, complaint) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        with pytest.raises(InvalidOption) as caught:
            fuses.put_rating(tx, orders, now=given.now, **rating)
    assert complaint in str(caught.value)


def test_a_fuse_blows_once_and_the_first_reason_stands(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        assert fuses.blow(tx, total, given.now, WHY, {"delta_row_count": 85432}) is True
        assert fuses.blow(tx, total, given.later(5), "another", {}) is False
    with catalog.read() as tx:
        [found] = fuses.listing(tx)
        assert fuses.listing(tx, state=FuseState.BLOWN) == [found]
        assert fuses.listing(tx, state=FuseState.ARMED) == []
    assert (found.state, found.blown_at, found.blow_reason) == (FuseState.BLOWN, given.now, WHY)
    assert found.blow_details == {"delta_row_count": 85432}
    # Its rating is among the options of the stream table.
    assert (found.mode, found.ceiling) == ("none", None)


def test_a_blown_source_stays_blown_under_a_new_rating(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        fuses.put_rating(tx, orders, mode="fixed", ceiling=10, now=given.now)
        fuses.blow(tx, orders, given.now, WHY, {})
        again = fuses.put_rating(tx, orders, mode="fixed", ceiling=1000, now=given.later(1))
    assert (again.state, again.ceiling, again.blow_reason) == (FuseState.BLOWN, 1000, WHY)


def test_a_reset_says_who_and_what_and_can_blow_again(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        fuses.blow(tx, total, given.now, WHY, {"n": 1})
        armed = fuses.reset(tx, total, "reinitialize", "ada", given.later(60))
        assert (armed.state, armed.blown_at, armed.blow_reason, armed.blow_details) == ("ARMED", None, None, None)
        assert (armed.last_reset_at, armed.last_reset_by) == (given.later(60), "ada")
        assert armed.last_reset_action is FuseReset.REINITIALIZE
        assert fuses.blow(tx, total, given.later(70), WHY, {}) is True
        blown = fuses.get(tx, total)
        assert (blown.last_reset_by, blown.blown_at) == ("ada", given.later(70))


def test_only_a_blown_fuse_can_be_reset(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        with pytest.raises(InvalidOption, match="the fuse of total is not blown"):
            fuses.reset(tx, total, "apply", "ada", given.now)
        fuses.blow(tx, total, given.now, WHY, {})
        with pytest.raises(InvalidOption) as caught:
            fuses.reset(tx, total, "ignore", "ada", given.now)
        assert fuses.get(tx, total).state is FuseState.BLOWN
    assert caught.value.hint == "action = 'apply', 'reinitialize' or 'skip_changes'"


def test_the_changes_pass_once_after_a_reset_that_lets_them(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        total = given.stream(tx, "total").relation.id
        for action, passes in (("APPLY", True), ("REINITIALIZE", True), ("SKIP_CHANGES", False)):
            fuses.blow(tx, total, given.now, WHY, {})
            assert not fuses.get(tx, total).passes_once(None)
            armed = fuses.reset(tx, total, action, None, given.later(60))
            assert armed.passes_once(None) is passes
            assert armed.passes_once(given.later(59)) is passes
            assert not armed.passes_once(given.later(60))
            assert not armed.passes_once(given.later(61))


def test_a_fuse_goes_with_its_relation(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        orders = given.table(tx, "orders").id
        fuses.put_rating(tx, orders, mode="fixed", ceiling=10, now=given.now)
        relations.remove(tx, orders)
        assert fuses.listing(tx) == []
    with pytest.raises(ConcurrentModification), catalog.write() as tx:
        fuses.blow(tx, orders, given.now, WHY, {})
