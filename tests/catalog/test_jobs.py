from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.given import Given
from trickle.catalog import Catalog, jobs
from trickle.catalog.records import Job, JobStatus
from trickle.errors import ConcurrentModification, InternalError


def enqueued(tx, given: Given, key: str, seconds: float = 0, **fields) -> Job:
    usual: dict[str, Any] = {"kind": "SINGLETON", "members": [1], "now": given.later(seconds)}
    return jobs.enqueue(tx, unit_key=key, **usual | fields)


def test_a_job_waits_runs_and_ends(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        job = enqueued(tx, given, "a", members=[4, 2], kind="ATOMIC_GROUP", lease_token=7, detail={"why": "schedule"})
        assert (job.status, job.members, job.attempt, job.lease_token) == (JobStatus.QUEUED, (4, 2), 1, 7)
        assert jobs.start(tx, job.id, "worker-1", given.later(1)) is True
        assert jobs.start(tx, job.id, "worker-2", given.later(1)) is False
        [running] = jobs.open_jobs(tx)
        assert (running.status, running.worker, running.started_at) == (JobStatus.RUNNING, "worker-1", given.later(1))
        assert jobs.finish(tx, job.id, JobStatus.SUCCEEDED, given.later(2)) is True
        assert jobs.open_jobs(tx) == []
        [done] = jobs.recent(tx)
    assert (done.status, done.finished_at, done.detail) == (JobStatus.SUCCEEDED, given.later(2), {"why": "schedule"})


def test_a_unit_has_one_open_job(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        first = enqueued(tx, given, "a")
        with pytest.raises(ConcurrentModification, match="unit a has a job already"):
            enqueued(tx, given, "a")
        jobs.start(tx, first.id, "w", given.now)
        with pytest.raises(ConcurrentModification):
            enqueued(tx, given, "a")
        jobs.finish(tx, first.id, JobStatus.RETRYABLE_FAILED, given.now, error_message="busy", detail={"n": 1})
        again = enqueued(tx, given, "a", attempt=2)
        assert [job.attempt for job in jobs.recent(tx)] == [2, 1]
        assert jobs.recent(tx, limit=1) == [again]
        assert (jobs.recent(tx)[1].error_message, jobs.recent(tx)[1].detail) == ("busy", {"n": 1})


def test_the_first_end_of_a_job_stands(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        job = enqueued(tx, given, "a")
        jobs.start(tx, job.id, "w", given.now)
        assert jobs.cancel(tx, given.now, worker="w", reason="its process is gone") == [job.id]
        assert jobs.finish(tx, job.id, JobStatus.SUCCEEDED, given.later(1)) is False
        [kept] = jobs.recent(tx)
        assert (kept.status, kept.error_message) == (JobStatus.CANCELLED, "its process is gone")
        with pytest.raises(InternalError):
            jobs.finish(tx, job.id, JobStatus.RUNNING, given.now)


def test_the_jobs_of_the_dead_are_cancelled_and_no_others(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        old, new, plain = (enqueued(tx, given, f"unit {token}", lease_token=token) for token in (6, 7, None))
        jobs.start(tx, new.id, "w", given.now)
        assert jobs.cancel(tx, given.now, below_token=7) == [old.id]
        assert jobs.cancel(tx, given.now, worker="v") == []
        assert [job.id for job in jobs.open_jobs(tx)] == [new.id, plain.id]
        assert jobs.cancel(tx, given.now, worker="w") == [new.id]
        with pytest.raises(InternalError, match="which jobs"):
            jobs.cancel(tx, given.now)


def test_purge_takes_the_oldest_that_ended(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        made = [enqueued(tx, given, str(n), n) for n in range(4)]
        for job in made[:3]:
            jobs.finish(tx, job.id, JobStatus.SUCCEEDED, job.enqueued_at)
        assert jobs.purge(tx, given.later(2), batch=1) == 1
        assert [job.id for job in jobs.recent(tx)] == [made[3].id, made[2].id, made[1].id]
        assert jobs.purge(tx, given.later(100), batch=10) == 2
        assert jobs.open_jobs(tx) == [made[3]]
