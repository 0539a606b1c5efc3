"""What a tick writes beside the refreshes themselves: fresh marks, why units were held, jobs, alerts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trickle.catalog import alerts, history, jobs, streams
from trickle.catalog.records import Action, Event, Initiator, JobStatus, Outcome
from trickle.dag.units import Unit
from trickle.errors import ConcurrentModification
from trickle.gates.verdict import Verdict
from trickle.refresh.gating import is_same_skip, skip_reason, verdict_details
from trickle.scheduler.lease import is_dead, worker_name
from trickle.scheduler.state import Memory, State
from trickle.warehouse import Warehouse


def mark_fresh(warehouse: Warehouse, memory: Memory, state: State, tables: Collection[int]) -> None:
    """Note that stream tables are as fresh as the cut: one statement, however many they are."""
    if not tables:
        return
    with warehouse.catalog.write() as tx:
        streams.mark_idle(tx, tables, state.now, state.now)
    for table in tables:
        last = state.tables[table].last_refresh_at
        if last is not None:
            marked, computed = memory.computed.get(table, (None, last))
            memory.computed[table] = (state.now, computed if marked == last else last)


def record_held(warehouse: Warehouse, memory: Memory, state: State, verdicts: Mapping[int, Verdict]) -> None:
    """Enter why stream tables were held back, unless the history says so already."""
    new = {
        table: verdict for table, verdict in verdicts.items() if memory.said.get(table) != _said(state, table, verdict)
    }
    if not new:
        return
    with warehouse.catalog.write() as tx:
        for table, verdict in new.items():
            latest = history.recent(tx, table, limit=1)
            if latest and is_same_skip(latest[0], verdict):
                continue
            found = state.tables[table]
            history.record(
                tx,
                relation_id=table,
                name=str(found.name),
                action=Action.SKIP,
                status=Outcome.SKIPPED,
                initiated_by=Initiator.SCHEDULER,
                started_at=state.now,
                ended_at=state.now,
                version_before=found.version,
                version_after=found.version,
                reason=skip_reason(verdict),
                details=verdict_details(verdict),
            )
    memory.said.update({table: _said(state, table, verdict) for table, verdict in new.items()})


def _said(state: State, table: int, verdict: Verdict) -> str:
    """A reason, and the refresh that it came after: one that was asked for by hand may have come between."""
    return f"{state.tables[table].last_refresh_at} {skip_reason(verdict)}"


def enqueue(warehouse: Warehouse, unit: Unit[int], token: int | None, rank: int) -> int | None:
    """Enter a unit among the jobs; None while a worker elsewhere has it."""
    now = warehouse.clock.now()
    try:
        return _enqueue(warehouse, unit, token, rank)
    except ConcurrentModification:
        with warehouse.catalog.write() as tx:
            for job in jobs.open_jobs(tx):
                if job.unit_key == unit.key and job.worker is not None and is_dead(job.worker):
                    jobs.cancel(tx, now, worker=job.worker, reason="its process is gone")
    try:
        return _enqueue(warehouse, unit, token, rank)
    except ConcurrentModification:
        return None


def _enqueue(warehouse: Warehouse, unit: Unit[int], token: int | None, rank: int) -> int:
    with warehouse.catalog.write() as tx:
        job = jobs.enqueue(
            tx,
            unit_key=unit.key,
            kind=unit.kind.value,
            members=unit.members,
            now=warehouse.clock.now(),
            lease_token=token,
            detail={"rank": rank},
        )
    return job.id


def begin_job(warehouse: Warehouse, job: int) -> None:
    """A worker takes a unit."""
    with warehouse.catalog.write() as tx:
        jobs.start(tx, job, worker_name(), warehouse.clock.now())


def end_job(warehouse: Warehouse, job: int, status: JobStatus, error: str | None = None, **detail: object) -> None:
    """A unit has ended, or was taken back."""
    with warehouse.catalog.write() as tx:
        jobs.finish(tx, job, status, warehouse.clock.now(), error_message=error, detail=detail or None)


def alert_once(
    warehouse: Warehouse, memory: Memory, event: Event, table: int, active: bool, payload: Mapping[str, object]
) -> None:
    """Raise an alert when its cause begins, and not again before it has passed."""
    key = (event.value, table)
    if not active:
        memory.alerted.discard(key)
        return
    if key in memory.alerted:
        return
    memory.alerted.add(key)
    with warehouse.catalog.write() as tx:
        alerts.add(
            tx,
            event=event.value,
            relation_id=table,
            severity=event.severity,
            payload=dict(payload),
            now=warehouse.clock.now(),
        )
