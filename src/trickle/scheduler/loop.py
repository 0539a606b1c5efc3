"""The daemon: leads or stands by, ticks when something happens, and stops cleanly.

A tick begins when a commit appears, when a stream table with something to do becomes due, and from time to time in any
case. Units that take long go on while later ticks begin: what they work on is left out of those.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType

from trickle.apply.unit import recover
from trickle.errors import TrickleError
from trickle.history.failures import close_abandoned
from trickle.history.sinks import deliver, sinks_of
from trickle.publish.following import follow
from trickle.scheduler.intake import Listener
from trickle.scheduler.lease import Leadership
from trickle.scheduler.run import Scheduler, memory_of
from trickle.scheduler.takeover import close_predecessors
from trickle.scheduler.tick import Plan
from trickle.scheduler.wake import ENDED, STOP, Wake, Watcher
from trickle.settings import Settings
from trickle.warehouse import Warehouse

_SHARE = 4
"""A tick is followed by a rest of so many times its own length: a storm of commits must not occupy a core."""
_SETTLE_SECONDS = 5.0
"""How long a stream table that was just made or redefined is left to whoever did so: they fill it themselves."""
log = logging.getLogger("trickle.scheduler")


@dataclass(frozen=True)
class Progress:
    """What the scheduler is doing, for a display."""

    leads: bool
    stream_tables: int = 0
    running: tuple[str, ...] = ()
    waiting: int = 0


def run(
    warehouse: Warehouse,
    stop: threading.Event | None = None,
    *,
    once: bool = False,
    show: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Keep the warehouse until stopped: by the event, SIGTERM or Ctrl-C. ``once``: lead, tick once, and return."""
    loop = Loop(warehouse, stop or threading.Event(), show)
    with _stopping_on_signals(loop):
        loop.run(once=once)


class Loop:
    """One scheduler of a warehouse."""

    def __init__(self, warehouse: Warehouse, stop: threading.Event, show: Callable[[Progress], None]) -> None:
        self.warehouse = warehouse
        self.stop = stop
        self.wake = Wake()
        self._show = show
        self._memory = memory_of(warehouse)
        self._helpers = (
            _Helper("trickle-alerts", lambda: _deliver(warehouse)),
            _Helper("trickle-publications", lambda: follow(warehouse, patience=self._memory.patience)),
        )
        self._why = "asked"

    def end(self, why: str) -> None:
        """Finish what is running and stop. May be called from a signal handler."""
        self._why = why
        self.stop.set()
        self.wake.ring(STOP)

    def run(self, *, once: bool = False) -> None:
        """Lead whenever nobody else does, until stopped."""
        if not once:
            # Whoever sets the event need not know about the bell.
            threading.Thread(target=self._ring_when_stopped, name="trickle-stop", daemon=True).start()
        standing_by = False
        while not self.stop.is_set():
            ttl = timedelta(seconds=self._settings().lease_seconds)
            if self._led(ttl, once=once):
                if once:
                    return
                standing_by = False
                continue
            if not standing_by:
                log.info("event=standing_by")
                self._show(Progress(leads=False))
            standing_by = True
            self.wake.wait(ttl.total_seconds() / 3)
        log.info("event=stopped why=%s", self._why)

    def _led(self, ttl: timedelta, *, once: bool) -> bool:
        """Lead until stopped or replaced; False when another one leads, or nothing can be done now."""
        try:
            leader = Leadership.take(self.warehouse, ttl)
            if leader is None:
                return False
            with leader:
                self._lead(leader, once=once)
            return True
        except TrickleError as error:
            if once:
                raise
            log.warning("event=cannot_lead error=%r", error.message)
            return False

    def _settings(self) -> Settings:
        try:
            with self.warehouse.catalog.read() as tx:
                return self.warehouse.settings(tx)
        except TrickleError:
            return self.warehouse.given_settings

    def _ring_when_stopped(self) -> None:
        self.stop.wait()
        self.wake.ring(STOP)

    def _lead(self, leader: Leadership, *, once: bool) -> None:
        log.info("event=leading holder=%s token=%s", leader.holder, leader.token)
        recover(self.warehouse)
        close_abandoned(self.warehouse)
        close_predecessors(self.warehouse)
        scheduler = Scheduler(self.warehouse, leader, self._memory, lambda: self.wake.ring(ENDED))
        watcher, listener = Watcher(self.wake), Listener(self.wake)
        for helper in self._helpers:
            helper.start()
        try:
            if once:
                self._once(scheduler)
            else:
                self._keep(scheduler, leader, watcher, listener)
        finally:
            watcher.close()
            listener.close()
            scheduler.close()
            for helper in self._helpers:
                helper.stop()

    def _once(self, scheduler: Scheduler) -> None:
        scheduler.begin(self.warehouse.clock.now())
        while scheduler.runs:
            scheduler.step(wait=True)

    def _keep(self, scheduler: Scheduler, leader: Leadership, watcher: Watcher, listener: Listener) -> None:
        next_tick = 0.0
        while not self.stop.is_set() and not leader.lost:
            began = time.monotonic()
            interval = self._settings().scheduler_interval_ms / 1000
            try:
                if began >= next_tick:
                    made = self._begin(scheduler, watcher)
                    listener.listen(self._memory.addresses)
                    next_tick = began + min(interval, self._until_due(made))
                scheduler.step()
                scheduler.take_results()
            except TrickleError as error:
                log.warning("event=tick_failed error=%r", error.message)
                next_tick = began + interval
            cost = time.monotonic() - began
            self._tell(scheduler)
            reasons = self.wake.wait(next_tick - time.monotonic())
            if reasons - {ENDED} or (ENDED in reasons and not scheduler.crew.waiting):
                next_tick = min(next_tick, began + (1 + _SHARE) * cost)

    def _begin(self, scheduler: Scheduler, watcher: Watcher) -> Plan | None:
        before = self._memory.definitions
        made = scheduler.begin(self.warehouse.clock.now(), rested=True, settle=_SETTLE_SECONDS)
        now = self._memory.definitions
        if now is not None and (now is not before or not watcher.has_begun):
            watcher.watch(now.places.values())
        return made

    def _until_due(self, made: Plan | None) -> float:
        at = None if made is None else made.next_at
        return float("inf") if at is None else max(0.0, (at - self.warehouse.clock.now()).total_seconds())

    def _tell(self, scheduler: Scheduler) -> None:
        for helper in self._helpers:
            helper.now()
        known = self._memory.definitions
        running = tuple(sorted(task.name for task in scheduler.crew.running.values()))
        self._show(Progress(True, len(known.dag.streams) if known else 0, running, len(scheduler.crew.waiting)))


class _Helper:
    """Does something in a thread of its own whenever it is poked: others need not wait for a server that takes long."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self._name = name
        self._once = work
        self._due = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._ended.clear()
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def now(self) -> None:
        self._due.set()

    def stop(self) -> None:
        self._ended.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            with suppress(TrickleError):
                self._once()
            if self._ended.is_set():
                return


def _deliver(warehouse: Warehouse) -> None:
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    deliver(warehouse, sinks_of(warehouse, settings))


@contextmanager
def _stopping_on_signals(loop: Loop) -> Iterator[None]:
    """Inside the block, SIGTERM and Ctrl-C let the loop end what is running; a second one ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(number: int, _: FrameType | None) -> None:
        # Nothing is logged here: the thread that is interrupted may be writing to the log itself.
        restore()
        loop.end(signal.Signals(number).name)

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()
