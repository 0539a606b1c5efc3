"""One leader at a time, replaced when it dies, fenced off when it does not know."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import trickle
from trickle.catalog import leases
from trickle.catalog.leases import LeaseLost
from trickle.errors import ConcurrentModification
from trickle.scheduler.lease import LEASE, Leadership, acquire, is_dead, worker_name
from trickle.scheduler.run import tick
from trickle.testing import FakeClock

TTL = timedelta(seconds=15)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def t(tmp_path: Path, clock: FakeClock) -> Iterator[trickle.Trickle]:
    with trickle.connect(tmp_path / "wh", clock=clock) as opened:
        yield opened


def test_one_leads_and_the_next_one_waits_for_it(t: trickle.Trickle) -> None:
    first = Leadership.take(t.warehouse, TTL)
    assert first is not None
    with first:
        assert Leadership.take(t.warehouse, TTL) is None
    second = Leadership.take(t.warehouse, TTL)
    assert second is not None
    assert second.token > first.token


def test_a_leader_that_falls_silent_is_replaced_and_fenced_off(t: trickle.Trickle, clock: FakeClock) -> None:
    old = Leadership.take(t.warehouse, TTL)
    assert old is not None
    clock.advance(TTL)
    assert Leadership.take(t.warehouse, TTL) is not None
    assert not old.lost
    with pytest.raises(LeaseLost), t.warehouse.catalog.write() as tx:
        old.fence(tx)
    assert old.lost


def test_a_leader_that_died_on_this_machine_is_replaced_at_once(t: trickle.Trickle) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    name = worker_name().rpartition(":")[0] + f":{gone.pid}:abc"
    assert is_dead(name)
    assert acquire(t.warehouse, name, TTL) is not None
    assert Leadership.take(t.warehouse, TTL) is not None


def test_a_leader_elsewhere_is_given_its_time(t: trickle.Trickle) -> None:
    assert acquire(t.warehouse, "elsewhere:1:abc", TTL) is not None
    assert Leadership.take(t.warehouse, TTL) is None
    assert not is_dead("elsewhere:1:abc")
    assert not is_dead(worker_name())


def test_a_lease_is_renewed_while_its_holder_lives(tmp_path: Path) -> None:
    with trickle.connect(tmp_path / "wh") as t:
        short = timedelta(milliseconds=300)
        leader = Leadership.take(t.warehouse, short)
        assert leader is not None
        with leader:
            import time

            time.sleep(0.8)
            with t.warehouse.catalog.read() as tx:
                lease = leases.find(tx, LEASE)
            assert lease is not None
            assert lease.is_held(t.warehouse.clock.now())
            assert not leader.lost


def test_a_tick_by_hand_is_refused_while_a_scheduler_leads(t: trickle.Trickle) -> None:
    leader = Leadership.take(t.warehouse, TTL)
    assert leader is not None
    with leader, pytest.raises(ConcurrentModification, match="another scheduler keeps this warehouse"):
        tick(t.warehouse)
    assert tick(t.warehouse) == []
