from __future__ import annotations

from datetime import timedelta

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, leases
from trickle.catalog.leases import LeaseLost
from trickle.catalog.records import Lease
from trickle.errors import TransientError

TTL = timedelta(seconds=15)


def test_one_holds_it_and_the_other_waits_until_it_runs_out(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        first = leases.acquire(tx, "scheduler", "ada", TTL, given.now)
        assert first == Lease("scheduler", "ada", 1, given.now, given.later(15))
        assert leases.acquire(tx, "scheduler", "bob", TTL, given.later(14)) is None
        assert leases.acquire(tx, "another", "bob", TTL, given.now) is not None
        second = leases.acquire(tx, "scheduler", "bob", TTL, given.later(15))
    assert second == Lease("scheduler", "bob", 2, given.later(15), given.later(30))
    with catalog.read() as tx:
        assert leases.find(tx, "scheduler") == second
        assert leases.find(tx, "unheard of") is None


def test_who_holds_it_may_ask_again(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        leases.acquire(tx, "scheduler", "ada", TTL, given.now)
        again = leases.acquire(tx, "scheduler", "ada", TTL, given.later(5))
        assert again == Lease("scheduler", "ada", 1, given.now, given.later(20))
        # Once it has run out the token grows, even for the same holder: work of its earlier life is fenced off.
        late = leases.acquire(tx, "scheduler", "ada", TTL, given.later(60))
    assert late is not None
    assert late.token == 2


def test_a_renewed_lease_lasts_longer_and_never_shorter(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        leases.acquire(tx, "scheduler", "ada", TTL, given.now)
        assert leases.renew(tx, "scheduler", 1, TTL, given.later(10)).expires_at == given.later(25)
        assert leases.renew(tx, "scheduler", 1, TTL, given.later(5)).expires_at == given.later(25)
        assert leases.acquire(tx, "scheduler", "bob", TTL, given.later(24)) is None
        # Late, but nobody came in between.
        assert leases.renew(tx, "scheduler", 1, TTL, given.later(100)).is_held(given.later(114))


def test_an_old_token_is_refused_everywhere(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        leases.acquire(tx, "scheduler", "ada", TTL, given.now)
        leases.check(tx, "scheduler", 1)
        leases.acquire(tx, "scheduler", "bob", TTL, given.later(20))
        with pytest.raises(LeaseLost, match="taken over") as caught:
            leases.renew(tx, "scheduler", 1, TTL, given.later(20))
        with pytest.raises(LeaseLost):
            leases.check(tx, "scheduler", 1)
        leases.check(tx, "scheduler", 2)
        assert leases.release(tx, "scheduler", 1, given.later(20)) is False
    assert caught.value.detail == "token 1 is not valid: it is held by bob with token 2"
    # A refresh that was fenced off is no fault of its table.
    assert isinstance(caught.value, TransientError)


def test_a_lease_that_nobody_held_fences_everybody_off(catalog: Catalog) -> None:
    with catalog.write() as tx, pytest.raises(LeaseLost, match="taken over"):
        leases.check(tx, "scheduler", 1)


def test_a_released_lease_is_free_at_once_and_its_token_spent(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        leases.acquire(tx, "scheduler", "ada", TTL, given.now)
        assert leases.release(tx, "scheduler", 1, given.later(1)) is True
        assert leases.release(tx, "scheduler", 1, given.later(1)) is False
        with pytest.raises(LeaseLost):
            leases.check(tx, "scheduler", 1)
        taken = leases.acquire(tx, "scheduler", "bob", TTL, given.later(1))
    assert taken is not None
    assert taken.token == 3
