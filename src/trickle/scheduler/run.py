"""Carries ticks out. ``tick`` is one from beginning to end; the loop has several under way when units take long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from trickle.catalog import leases, scheduling
from trickle.catalog.store import Catalog
from trickle.errors import ConcurrentModification, TrickleError
from trickle.history.sinks import LogSink, deliver, sinks_of
from trickle.publish.following import follow
from trickle.refresh.outcome import RefreshResult
from trickle.scheduler.carrying import Run
from trickle.scheduler.crew import Crew
from trickle.scheduler.intake import take_in
from trickle.scheduler.lease import LEASE, Leadership
from trickle.scheduler.recording import mark_fresh
from trickle.scheduler.state import Memory, load_state
from trickle.scheduler.tick import Plan, plan
from trickle.scheduler.watching import watch_over
from trickle.settings import Settings
from trickle.warehouse import Warehouse

_memories: WeakKeyDictionary[Catalog, Memory] = WeakKeyDictionary()


def memory_of(warehouse: Warehouse) -> Memory:
    """What the ticks of this process remember of a warehouse."""
    return _memories.setdefault(warehouse.catalog, Memory())


class Scheduler:
    """Ticks under way, and the workers that they share."""

    def __init__(
        self,
        warehouse: Warehouse,
        leader: Leadership,
        memory: Memory,
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        self.warehouse = warehouse
        self.leader = leader
        self.memory = memory
        self.crew = Crew(notify)
        self.runs: list[Run] = []
        self.results: list[RefreshResult] = []

    def begin(self, now: datetime, *, rested: bool = False, settle: float = 0) -> Plan | None:
        """Look at everything and begin a tick; None when the scheduler was told to rest.

        ``rested`` and ``settle`` as in ``load_state``.
        """
        take_in(self.warehouse, self.memory, self.leader)
        state = load_state(self.warehouse, self.memory, now, rested=rested, settle=settle)
        watch_over(self.warehouse, self.memory, state)
        if state.told.paused or state.told.draining:
            return None
        busy = {table for run in self.runs for table in run.tables}
        made = plan(state, busy)
        mark_fresh(self.warehouse, self.memory, state, made.idle)
        if made.units:
            self.runs.append(Run(self.warehouse, self.memory, self.crew, made, self.leader))
        return made

    def step(self, *, wait: bool = False) -> None:
        """Take in what has ended, decide what follows from it, and give idle workers something to do."""
        self.crew.collect(None if wait and self.crew.running else 0)
        for run in self.runs:
            try:
                run.advance()
            except BaseException:
                run.give_up_waiting()  # What it had not decided about, the next tick does.
                raise
        if self.crew.waiting or self.runs:
            self._start()
        for run in [run for run in self.runs if run.is_done]:
            self.runs.remove(run)
            self.results += run.results

    def _start(self) -> None:
        with self.warehouse.catalog.read() as tx:
            told = scheduling.state(tx)
            settings = self.warehouse.settings(tx)
        if self.leader.lost or self.crew.stopping.is_set() or told.paused or told.draining:
            self.end_early()
            return
        workers = settings.max_concurrent_refreshes if settings.parallel_refresh_mode else 1
        self.crew.start(workers, settings.schema_quota)

    def end_early(self) -> None:
        """Begin no further unit."""
        for run in self.runs:
            run.give_up_waiting()
        self.crew.drop_waiting()

    def take_results(self) -> list[RefreshResult]:
        """The results of ticks that have ended, once."""
        taken, self.results = self.results, []
        return taken

    def close(self) -> None:
        """End what has begun, and nothing more."""
        self.crew.stopping.set()
        try:
            self.end_early()
            while self.crew.running:
                self.step(wait=True)
        finally:
            self.crew.close()


def tick(warehouse: Warehouse, now: datetime | None = None) -> list[RefreshResult]:
    """One tick: refresh what is due, in order, and say what became of it. ``now`` stands for the current time.

    Stream tables that have nothing to do are not among the results. ConcurrentModification while another scheduler
    leads.
    """
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    leader = Leadership.take(warehouse, timedelta(seconds=settings.lease_seconds))
    if leader is None:
        raise _another_leads(warehouse)
    acting = warehouse if now is None else replace(warehouse, clock=_RunningFrom(now))
    with leader:
        scheduler = Scheduler(acting, leader, memory_of(warehouse))
        try:
            scheduler.begin(acting.clock.now())
            while scheduler.runs:
                scheduler.step(wait=True)
        finally:
            scheduler.close()
    _tell(warehouse, settings)
    with suppress(TrickleError):
        follow(warehouse, patience=memory_of(warehouse).patience)
    return scheduler.results


def _tell(warehouse: Warehouse, settings: Settings) -> None:
    """Hand alerts to the sinks, as the daemon does; what cannot be told now is told by the next tick.

    Not to the log, which is that of the daemon: whoever calls has the alerts at hand.
    """
    with suppress(TrickleError):
        deliver(warehouse, [sink for sink in sinks_of(warehouse, settings) if not isinstance(sink, LogSink)])


def _another_leads(warehouse: Warehouse) -> ConcurrentModification:
    with warehouse.catalog.read() as tx:
        lease = leases.find(tx, LEASE)
    return ConcurrentModification(
        "another scheduler keeps this warehouse",
        detail=None if lease is None else f"{lease.holder}, until {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC or longer",
        hint="it refreshes what is due; stop it first to tick by hand",
    )


class _RunningFrom:
    """A clock that shows a given time now, and goes on from there."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._since = time.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=time.monotonic() - self._since)
