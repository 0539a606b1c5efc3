"""Jobs: units that were handed to workers. A unit has one open job at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.orm import Session

from trickle.catalog.failures import unique_or
from trickle.catalog.models import JobRow
from trickle.catalog.records import Job, JobStatus
from trickle.errors import ConcurrentModification, InternalError

_OPEN = JobRow.status.in_([JobStatus.QUEUED, JobStatus.RUNNING])


def enqueue(
    tx: Session,
    *,
    unit_key: str,
    kind: str,
    members: Iterable[int],
    now: datetime,
    attempt: int = 1,
    lease_token: int | None = None,
    detail: Mapping[str, object] | None = None,
) -> Job:
    """Enter a unit that is to be refreshed; ConcurrentModification while it has an open job."""
    values: dict[str, Any] = {
        "unit_key": unit_key,
        "kind": kind,
        "members": list(members),
        "status": JobStatus.QUEUED,
        "attempt": attempt,
        "lease_token": lease_token,
        "enqueued_at": now,
        "detail": dict(detail) if detail else None,
    }
    with unique_or(tx, lambda: _taken(unit_key)):
        row = tx.execute(insert(JobRow).values(**values).returning(JobRow)).scalar_one()
    return _record(row)


def start(tx: Session, job_id: int, worker: str, now: datetime) -> bool:
    """Take a queued job; False when it was taken or cancelled."""
    statement = update(JobRow).where(JobRow.id == job_id, JobRow.status == JobStatus.QUEUED)
    statement = statement.values(status=JobStatus.RUNNING, worker=worker, started_at=now)
    return tx.execute(statement.returning(JobRow.id)).first() is not None


def finish(
    tx: Session,
    job_id: int,
    status: JobStatus,
    now: datetime,
    *,
    error_message: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> bool:
    """Say how a job ended; False when it had ended already, as one that was cancelled. The first word stands."""
    if status.is_open:
        raise InternalError("a job cannot end and stay open")
    changed: dict[str, Any] = {"status": status, "finished_at": now, "error_message": error_message}
    if detail is not None:
        changed["detail"] = dict(detail)
    statement = update(JobRow).where(JobRow.id == job_id, _OPEN).values(**changed)
    return tx.execute(statement.returning(JobRow.id)).first() is not None


def cancel(
    tx: Session, now: datetime, *, worker: str | None = None, below_token: int | None = None, reason: str | None = None
) -> list[int]:
    """End the open jobs of a worker that died, or of all that worked under an older lease; returns their ids."""
    whose = []
    if worker is not None:
        whose.append(JobRow.worker == worker)
    if below_token is not None:
        whose.append(JobRow.lease_token < below_token)
    if not whose:
        raise InternalError("nothing says which jobs are to be cancelled")
    statement = update(JobRow).where(_OPEN, or_(*whose))
    statement = statement.values(status=JobStatus.CANCELLED, finished_at=now, error_message=reason)
    return sorted(tx.execute(statement.returning(JobRow.id)).scalars())


def open_jobs(tx: Session) -> list[Job]:
    """Jobs that wait or run, oldest first."""
    return [_record(row) for row in tx.execute(select(JobRow).where(_OPEN).order_by(JobRow.id)).scalars()]


def recent(tx: Session, limit: int = 100) -> list[Job]:
    """The last jobs, newest first."""
    return [_record(row) for row in tx.execute(select(JobRow).order_by(JobRow.id.desc()).limit(limit)).scalars()]


def purge(tx: Session, before: datetime, batch: int) -> int:
    """Remove at most ``batch`` jobs that ended before a time, oldest first; returns how many."""
    old = select(JobRow.id).where(JobRow.finished_at < before).order_by(JobRow.id).limit(batch)
    statement = delete(JobRow).where(JobRow.id.in_(old.scalar_subquery())).returning(JobRow.id)
    return len(tx.execute(statement).all())


def _taken(unit_key: str) -> ConcurrentModification:
    return ConcurrentModification(f"unit {unit_key} has a job already", hint="wait for it to end")


def _record(row: JobRow) -> Job:
    return Job(
        id=row.id,
        unit_key=row.unit_key,
        kind=row.kind,
        members=tuple(row.members),
        status=JobStatus(row.status),
        attempt=row.attempt,
        worker=row.worker,
        lease_token=row.lease_token,
        enqueued_at=row.enqueued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        detail=row.detail or {},
        error_message=row.error_message,
    )
