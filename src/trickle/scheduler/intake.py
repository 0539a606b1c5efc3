"""Attached databases in a tick: their replicas are brought to the present before the cut is taken.

A server that does not answer holds up nobody: its replicas stay where they are, and it is asked again later, each time
after a longer rest. So it is with stream tables that are to be removed from a database in which others work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

import psycopg

from trickle.catalog import databases, hosted, polled, scheduling
from trickle.catalog.outside import Database, Polled
from trickle.errors import TrickleError
from trickle.immediate.postgres.hosting import tidy_up
from trickle.postgres.connect import open_connection
from trickle.replicas.captures import POLLING, SCHEDULE, mode_of
from trickle.replicas.ingest import ingest_one
from trickle.replicas.polling import is_due, poll
from trickle.scheduler.lease import Leadership
from trickle.scheduler.state import Memory
from trickle.scheduler.wake import CAPTURED, Wake
from trickle.sources.postgres.triggers import CHANNEL
from trickle.warehouse import Warehouse

_FIRST_REST = 1.0
_LONGEST_REST = 60.0
_SETTLE_WAIT_MS = 1_000
"""A tick does not stand still because another process fills a stream table in a database."""
_LOOK_SECONDS = 1.0
"""How often a listener looks whether it should end."""
log = logging.getLogger("trickle.scheduler")


def take_in(warehouse: Warehouse, memory: Memory, leader: Leadership) -> None:
    """Ingest every attached database that is not resting."""
    with warehouse.catalog.read() as tx:
        if not polled.is_anything_outside(tx):
            memory.addresses = {}
            return
        found = databases.listing(tx)
        others = polled.listing(tx)
        told = scheduling.state(tx)
        unsettled = {one.database_id for one in hosted.left(tx)} if found else set()
    memory.addresses = {database.id: database.dsn for database in found}
    if told.paused or told.draining:
        return
    for database in found:
        answers = _take_in_database(warehouse, memory, leader, database)
        if answers and database.id in unsettled:
            _settle(warehouse, memory, database)
    for one in others:
        if is_due(one.schedule, one.polled_at, warehouse.clock.now()):
            _take_in_polled(warehouse, memory, leader, one)


def _take_in_database(warehouse: Warehouse, memory: Memory, leader: Leadership, database: Database) -> bool:
    """Ingest a database; False while it rests because it did not answer."""
    until, rest = memory.resting.get(database.id, (0.0, 0.0))
    if time.monotonic() < until:
        return False
    if _is_early(warehouse, database):
        return True
    try:
        ingest_one(warehouse, database, fence=leader.fence)
        memory.resting.pop(database.id, None)
    except TrickleError as error:
        if leader.lost:
            raise
        rest = min(max(_FIRST_REST, 2 * rest), _LONGEST_REST)
        memory.resting[database.id] = (time.monotonic() + rest, rest)
        log.warning("event=ingest_failed database=%s rest=%s error=%r", database.name, rest, error.message)
        return False
    return True


def _settle(warehouse: Warehouse, memory: Memory, database: Database) -> None:
    """Remove stream tables that no longer live in a database, unless that had to wait lately."""
    if memory.settling.is_resting(database.id):
        return
    try:
        tidy_up(warehouse, database, _SETTLE_WAIT_MS)
        memory.settling.succeeded(database.id)
    except TrickleError as error:
        memory.settling.failed(database.id)
        log.warning("event=settle_failed database=%s error=%r", database.name, error.message)


def _is_early(warehouse: Warehouse, database: Database) -> bool:
    """Whether a database that is read whole was read lately."""
    if mode_of(database) != POLLING:
        return False
    return not is_due(str(database.options[SCHEDULE]), database.ingested_at, warehouse.clock.now())


def _take_in_polled(warehouse: Warehouse, memory: Memory, leader: Leadership, source: Polled) -> None:
    if memory.polling.is_resting(source.relation.id):
        return
    try:
        poll(warehouse, source.relation.id, fence=leader.fence)
        memory.polling.succeeded(source.relation.id)
    except TrickleError as error:
        if leader.lost:
            raise
        memory.polling.failed(source.relation.id)
        log.warning("event=poll_failed source=%s error=%r", source.relation.name, error.message)


class Listener:
    """Rings the bell when a capture has something to tell."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._stop = threading.Event()
        self._heard: dict[int, str] = {}
        self._threads: list[threading.Thread] = []

    def listen(self, addresses: Mapping[int, str]) -> None:
        """Listen to these databases from now on; nothing happens when they are the same as before."""
        if dict(addresses) == self._heard:
            return
        self.close()
        self._heard, self._stop = dict(addresses), threading.Event()
        for address in self._heard.values():
            thread = threading.Thread(target=self._hear, args=(address, self._stop), name="trickle-ear", daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Listen to nothing any more."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads, self._heard = [], {}

    def _hear(self, address: str, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with open_connection(address) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    # What was captured before it began to listen is found by looking once more.
                    self._wake.ring(CAPTURED)
                    while not stop.is_set():
                        for _ in connection.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                            self._wake.ring(CAPTURED)
            except (TrickleError, psycopg.Error):
                # The tick says what is wrong; looking from time to time remains.
                stop.wait(_LONGEST_REST / 4)
