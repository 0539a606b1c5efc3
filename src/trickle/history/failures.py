"""Failed refreshes: recorded, counted, and in the end the stream table is suspended.

Transient errors and Ctrl-C are recorded and not counted: the same refresh may succeed later without anybody's help.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.catalog import alerts, history, intents, streams
from trickle.catalog.records import Outcome, RefreshRecord, Severity, Status
from trickle.errors import TransientError, TrickleError, was_interrupted
from trickle.lake.stage import discard_stages
from trickle.warehouse import Warehouse


class RolledBack(TransientError):
    """A stream table's refresh was undone because another member of its unit failed."""

    code = "ROLLED_BACK"

    def __init__(self, member: str) -> None:
        super().__init__(f"rolled back with its unit: the refresh of {member} failed")


_under_way: set[tuple[str, int]] = set()


def owner() -> dict[str, object]:
    """Who runs a refresh: enough to tell later whether that process still lives."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


@contextmanager
def under_way(warehouse: Warehouse) -> Iterator[Callable[[int], None]]:
    """Inside the block, this process works on the refreshes that it names."""
    named: set[tuple[str, int]] = set()

    def name(refresh_id: int) -> None:
        named.add((warehouse.catalog.url_shown, refresh_id))
        _under_way.update(named)

    try:
        yield name
    finally:
        _under_way.difference_update(named)


def record_failure(
    warehouse: Warehouse, refresh_id: int, relation_id: int, error: BaseException, *, counted: bool = True
) -> None:
    """Close the history row and suspend the stream table when it failed too often in a row.

    Not ``counted``: a statement that failed as a whole, which whoever ran it knows.
    """
    now = warehouse.clock.now()
    interrupted = was_interrupted(error)
    code = "INTERRUPTED" if interrupted else error.code if isinstance(error, TrickleError) else type(error).__name__
    with warehouse.catalog.write() as tx:
        history.finish(tx, refresh_id, status=Outcome.FAILED, now=now, error_code=code, error_message=str(error))
        if counted and not interrupted and not isinstance(error, TransientError):
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
        status=Status.SUSPENDED if suspend or stream.status is Status.SUSPENDED else Status.ERROR,
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


def close_abandoned(warehouse: Warehouse, relation_ids: Iterable[int] | None = None) -> int:
    """Close refreshes that nobody works on any more and that wrote no intent; remove what they staged; their number.

    Units whose intent stands are not touched: they will be rolled forward.
    """
    wanted = None if relation_ids is None else set(relation_ids)
    with warehouse.catalog.read() as tx:
        intended = {member.refresh_id for intent in intents.pending(tx) for member in intent.members}
        running = [r for r in history.running(tx) if wanted is None or r.relation_id in wanted]
        running = [r for r in running if r.id not in intended]
        dead = [(r, streams.by_id(tx, r.relation_id)) for r in running if is_abandoned(warehouse, r)]
    for record, stream in dead:
        prefix = record.details.get("stage")
        # One that has moved out of the lake has left nothing there.
        if isinstance(prefix, str) and stream.relation.location is not None:
            discard_stages(warehouse.location_of(stream.relation), prefix)
        with warehouse.catalog.write() as tx:
            history.finish(
                tx,
                record.id,
                status=Outcome.FAILED,
                now=warehouse.clock.now(),
                error_code="ABANDONED",
                error_message="the process or its catalog went away during the refresh; nothing was committed",
            )
    return len(dead)


def is_abandoned(warehouse: Warehouse, record: RefreshRecord) -> bool:
    """Whether nobody works on a refresh any more, as far as this machine can tell."""
    pid, host = record.details.get("pid"), record.details.get("host")
    if host != socket.gethostname() or not isinstance(pid, int):
        return False
    if pid == os.getpid():
        return (warehouse.catalog.url_shown, record.id) not in _under_way
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
