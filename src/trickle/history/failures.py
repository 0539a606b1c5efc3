"""Failed refreshes: recorded, counted, and in the end the stream table is suspended.

Transient errors are recorded and not counted: the same refresh may succeed later without anybody's help.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.catalog import alerts, history, streams
from trickle.catalog.records import Outcome, RefreshRecord, Severity, Status
from trickle.errors import TransientError, TrickleError
from trickle.lake.stage import discard_stages
from trickle.warehouse import Warehouse


class RolledBack(TransientError):
    """A stream table's refresh was undone because another member of its unit failed."""

    code = "ROLLED_BACK"

    def __init__(self, member: str) -> None:
        super().__init__(f"rolled back with its unit: the refresh of {member} failed")


def owner() -> dict[str, object]:
    """Who runs a refresh: enough to tell later whether that process still lives."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def record_failure(warehouse: Warehouse, refresh_id: int, relation_id: int, error: BaseException) -> None:
    """Close the history row and suspend the stream table when it failed too often in a row."""
    now = warehouse.clock.now()
    code = error.code if isinstance(error, TrickleError) else type(error).__name__
    with warehouse.catalog.write() as tx:
        history.finish(tx, refresh_id, status=Outcome.FAILED, now=now, error_code=code, error_message=str(error))
        if not isinstance(error, TransientError):
            _count(warehouse, tx, relation_id, code, str(error), now)


def _count(warehouse: Warehouse, tx: Session, relation_id: int, code: str, message: str, now: datetime) -> None:
    stream = streams.lock(tx, relation_id)
    errors = stream.consecutive_errors + 1
    suspend = errors >= warehouse.settings(tx).max_consecutive_errors
    streams.update(
        tx,
        relation_id,
        now=now,
        consecutive_errors=errors,
        last_error=message,
        last_error_at=now,
        status=Status.SUSPENDED if suspend else Status.ERROR,
    )
    payload: Mapping[str, object] = {
        "stream_table": str(stream.relation.name),
        "error_code": code,
        "error": message,
        "consecutive_errors": errors,
    }
    alerts.add(
        tx,
        event="auto_suspended" if suspend else "refresh_failed",
        relation_id=relation_id,
        severity=Severity.ERROR,
        payload=payload,
        now=now,
    )


def close_abandoned(warehouse: Warehouse) -> int:
    """Close refreshes whose process has died before it wrote an intent, and remove what it staged; their number."""
    with warehouse.catalog.read() as tx:
        dead = [(r, streams.by_id(tx, r.relation_id)) for r in history.running(tx) if _is_dead(r)]
    for record, stream in dead:
        prefix = record.details.get("stage")
        if isinstance(prefix, str):
            discard_stages(warehouse.location_of(stream.relation), prefix)
        with warehouse.catalog.write() as tx:
            history.finish(
                tx,
                record.id,
                status=Outcome.FAILED,
                now=warehouse.clock.now(),
                error_code="PROCESS_DIED",
                error_message="the process ended in the middle of the refresh; nothing was committed",
            )
    return len(dead)


def _is_dead(record: RefreshRecord) -> bool:
    pid, host = record.details.get("pid"), record.details.get("host")
    if host != socket.gethostname() or not isinstance(pid, int) or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
