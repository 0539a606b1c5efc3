"""What people tell the scheduler, and how it stands: pause, drain, declared groups, workers and jobs. No Spark job."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from trickle.catalog import groups, jobs, leases, scheduling
from trickle.catalog.records import Isolation, Job, JobStatus
from trickle.scheduler.definitions import Definitions, definitions
from trickle.scheduler.lease import LEASE, is_dead
from trickle.sql import names
from trickle.warehouse import Warehouse

_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class SchedulerRow:
    """Whether a scheduler keeps the warehouse, and what it was told."""

    state: str
    """LEADING, PAUSED, DRAINING, DRAINED or STOPPED."""
    leader: str | None
    token: int | None
    leads_since: datetime | None
    lease_until: datetime | None
    paused_by: str | None
    paused_at: datetime | None
    pause_reason: str | None
    draining_by: str | None
    draining_since: datetime | None
    jobs_running: int
    jobs_queued: int


@dataclass(frozen=True)
class WorkerPoolRow:
    """How many workers there are, and how many are busy."""

    workers: int
    busy: int
    idle: int
    queued: int
    schema_quota: int
    parallel: bool


@dataclass(frozen=True)
class JobRow:
    """A unit that was handed to a worker."""

    id: int
    unit: str
    kind: str
    members: str
    status: str
    attempt: int
    worker: str | None
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    wait_ms: float | None
    duration_ms: float | None
    error_message: str | None


@dataclass(frozen=True)
class RefreshGroupRow:
    """Stream tables that somebody declared to be refreshed together."""

    name: str
    isolation: str
    members: str
    created_at: datetime


def pause_all(warehouse: Warehouse, reason: str | None = None, by: str | None = None) -> SchedulerRow:
    """Have schedulers begin no refresh until ``resume_all``; what is running ends. Refreshes by hand go on."""
    with warehouse.catalog.write() as tx:
        scheduling.pause(tx, by or _user(), reason, warehouse.clock.now())
    return scheduler_status(warehouse)


def resume_all(warehouse: Warehouse) -> SchedulerRow:
    """Let schedulers go on after ``pause_all`` or ``drain``."""
    with warehouse.catalog.write() as tx:
        scheduling.resume(tx)
        scheduling.end_drain(tx)
    return scheduler_status(warehouse)


def drain(warehouse: Warehouse, timeout: float | None = None, by: str | None = None) -> SchedulerRow:
    """Have schedulers end what they began and begin nothing more; wait for that, for so many seconds at most.

    The state says what came of it: DRAINED, or DRAINING when the time was up.
    """
    with warehouse.catalog.write() as tx:
        scheduling.drain(tx, by or _user(), warehouse.clock.now())
    until = None if timeout is None else time.monotonic() + timeout
    while _open_jobs(warehouse) and (until is None or time.monotonic() < until):
        time.sleep(_LOOK_SECONDS)
    return scheduler_status(warehouse)


def scheduler_status(warehouse: Warehouse) -> SchedulerRow:
    """Whether a scheduler keeps the warehouse, and what it was told."""
    now = warehouse.clock.now()
    with warehouse.catalog.read() as tx:
        told, lease = scheduling.state(tx), leases.find(tx, LEASE)
        found = [job.status for job in _alive(jobs.open_jobs(tx))]
    leads = lease if lease is not None and lease.is_held(now) and not is_dead(lease.holder) else None
    state = "LEADING" if leads else "STOPPED"
    if told.paused:
        state = "PAUSED"
    if told.draining:
        state = "DRAINING" if found else "DRAINED"
    return SchedulerRow(
        state=state,
        leader=leads.holder if leads else None,
        token=leads.token if leads else None,
        leads_since=leads.acquired_at if leads else None,
        lease_until=leads.expires_at if leads else None,
        paused_by=told.paused_by,
        paused_at=told.paused_at,
        pause_reason=told.pause_reason,
        draining_by=told.draining_by,
        draining_since=told.draining_since,
        jobs_running=found.count(JobStatus.RUNNING),
        jobs_queued=found.count(JobStatus.QUEUED),
    )


def worker_pool_status(warehouse: Warehouse) -> WorkerPoolRow:
    """How many units may run side by side, and how many do."""
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
        found = [job.status for job in _alive(jobs.open_jobs(tx))]
    workers = settings.max_concurrent_refreshes if settings.parallel_refresh_mode else 1
    busy = found.count(JobStatus.RUNNING)
    return WorkerPoolRow(
        workers=workers,
        busy=busy,
        idle=max(0, workers - busy),
        queued=found.count(JobStatus.QUEUED),
        schema_quota=settings.schema_quota,
        parallel=settings.parallel_refresh_mode,
    )


def parallel_job_status(warehouse: Warehouse, limit: int = 100) -> list[JobRow]:
    """The last jobs, newest first."""
    known = definitions(warehouse)
    with warehouse.catalog.read() as tx:
        found = jobs.recent(tx, limit)
    return [_job(known, job) for job in found]


def _job(known: Definitions, job: Job) -> JobRow:
    tables = known.lineage.tables
    members = [str(tables[member].name) if member in tables else f"#{member}" for member in job.members]
    return JobRow(
        id=job.id,
        unit=job.unit_key,
        kind=job.kind,
        members=", ".join(members),
        status=job.status.value,
        attempt=job.attempt,
        worker=job.worker,
        enqueued_at=job.enqueued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        wait_ms=_between(job.enqueued_at, job.started_at),
        duration_ms=_between(job.started_at, job.finished_at),
        error_message=job.error_message,
    )


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds() * 1000


def create_refresh_group(
    warehouse: Warehouse, name: str, members: Sequence[str] | str, isolation: str = Isolation.READ_COMMITTED
) -> RefreshGroupRow:
    """Declare stream tables that are refreshed and committed together; ``members``: names, or one text with commas."""
    listed = members.split(",") if isinstance(members, str) else members
    tables = [names.table_name(member.strip()) for member in listed if member.strip()]
    with warehouse.catalog.write() as tx:
        groups.create(tx, name, tables, now=warehouse.clock.now(), isolation=isolation)
    return next(row for row in refresh_groups(warehouse) if row.name.lower() == name.strip().lower())


def drop_refresh_group(warehouse: Warehouse, name: str) -> None:
    """Forget a declared group: its members are refreshed on their own again."""
    with warehouse.catalog.write() as tx:
        groups.drop(tx, name)


def refresh_groups(warehouse: Warehouse) -> list[RefreshGroupRow]:
    """All declared groups."""
    with warehouse.catalog.read() as tx:
        found = groups.listing(tx)
    return [
        RefreshGroupRow(group.name, group.isolation.value, ", ".join(map(str, group.members)), group.created_at)
        for group in found
    ]


def _open_jobs(warehouse: Warehouse) -> list[Job]:
    with warehouse.catalog.read() as tx:
        return _alive(jobs.open_jobs(tx))


def _alive(found: Iterable[Job]) -> list[Job]:
    """Without those of processes that are gone: the next leader closes them."""
    return [job for job in found if job.worker is None or not is_dead(job.worker)]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
