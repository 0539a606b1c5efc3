"""Leadership: of all schedulers on a catalog one leads, by a lease that it renews while it lives.

A leader that was paused for too long does not notice that another took over. So every unit that it commits asks for
its token in the transaction that decides the commit (``fence``): with an old token nothing is committed. On this
machine a leader that died is replaced at once, as its process is gone; elsewhere when its lease has run out.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Self

from sqlalchemy.orm import Session

from trickle.catalog import jobs, leases
from trickle.catalog.leases import LeaseLost
from trickle.catalog.records import Lease
from trickle.errors import CatalogUnreachable, TrickleError
from trickle.warehouse import Warehouse

LEASE = "scheduler"
log = logging.getLogger("trickle.scheduler")


def worker_name() -> str:
    """The name of this process in leases and jobs."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_dead(name: str) -> bool:
    """Whether the process of that name is known to be gone; False where that cannot be told."""
    host, _, rest = name.partition(":")
    pid = rest.partition(":")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def acquire(warehouse: Warehouse, holder: str, ttl: timedelta) -> Lease | None:
    """The lease; None while another scheduler holds it and may be alive."""
    with warehouse.catalog.write() as tx:
        now = warehouse.clock.now()
        other = leases.find(tx, LEASE)
        if other is not None and other.is_held(now) and other.holder != holder and is_dead(other.holder):
            leases.release(tx, LEASE, other.token, now)
        lease = leases.acquire(tx, LEASE, holder, ttl, now)
        if lease is not None:
            # Whoever worked under an older token can no longer commit anything.
            jobs.cancel(tx, now, below_token=lease.token, reason="its scheduler was replaced")
        return lease


class Leadership:
    """A lease that is renewed in the background until it is given back or lost."""

    def __init__(self, warehouse: Warehouse, lease: Lease, ttl: timedelta) -> None:
        self._warehouse = warehouse
        self._ttl = ttl
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._beat = threading.Thread(target=self._keep, name="trickle-lease", daemon=True)
        self.token = lease.token
        self.holder = lease.holder

    @staticmethod
    def take(warehouse: Warehouse, ttl: timedelta) -> Leadership | None:
        """Become the leader; None while another one is."""
        holder = f"{worker_name()}:{uuid.uuid4().hex[:8]}"
        lease = acquire(warehouse, holder, ttl)
        return None if lease is None else Leadership(warehouse, lease, ttl)

    @property
    def lost(self) -> bool:
        """Whether another scheduler has taken over."""
        return self._lost.is_set()

    def fence(self, tx: Session) -> None:
        """Refuse to go on in this transaction when another scheduler has taken over."""
        try:
            leases.check(tx, LEASE, self.token)
        except LeaseLost:
            self._lost.set()
            raise

    def __enter__(self) -> Self:
        self._beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._beat.join()
        # Whoever comes next need not wait; when the catalog is gone, the lease runs out by itself.
        with suppress(TrickleError), self._warehouse.catalog.write() as tx:
            leases.release(tx, LEASE, self.token, self._warehouse.clock.now())

    def _keep(self) -> None:
        while not self._ended.wait(self._ttl.total_seconds() / 3):
            try:
                with self._warehouse.catalog.write() as tx:
                    leases.renew(tx, LEASE, self.token, self._ttl, self._warehouse.clock.now())
            except LeaseLost as error:
                self._lost.set()
                log.warning("event=lease_lost holder=%s token=%s detail=%r", self.holder, self.token, error.detail)
                return
            except CatalogUnreachable as error:
                log.warning("event=lease_not_renewed holder=%s error=%r", self.holder, error.message)
