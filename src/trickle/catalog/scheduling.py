"""What every scheduler of the warehouse reads first: whether definitions changed, and what it was told to do."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from trickle.catalog.models import SchedulerStateRow
from trickle.catalog.records import SchedulerState

_ROW = SchedulerStateRow


def ddl_number(tx: Session) -> int:
    """A number that grows, in the same transaction, whenever a definition changes.

    Definitions are relations, dependencies, stream tables, groups, gates, ratings of fuses and settings; not what a
    refresh changes. The database counts, whoever writes (revision 0003). Compare for equality only: one statement may
    count for more than one.
    """
    return tx.execute(select(_ROW.ddl_number)).scalar_one()


def state(tx: Session) -> SchedulerState:
    """All of it."""
    row = tx.execute(select(_ROW)).scalar_one()
    return SchedulerState(
        ddl_number=row.ddl_number,
        paused_at=row.paused_at,
        paused_by=row.paused_by,
        pause_reason=row.pause_reason,
        draining_since=row.draining_since,
        draining_by=row.draining_by,
    )


def pause(tx: Session, by: str, reason: str | None, now: datetime) -> SchedulerState:
    """Have the schedulers start no refresh until ``resume``. Paused already: who did it, when and why stay."""
    tx.execute(update(_ROW).where(_ROW.paused_at.is_(None)).values(paused_at=now, paused_by=by, pause_reason=reason))
    return state(tx)


def resume(tx: Session) -> bool:
    """Let the schedulers go on; False when they were not paused."""
    statement = update(_ROW).where(_ROW.paused_at.is_not(None))
    statement = statement.values(paused_at=None, paused_by=None, pause_reason=None)
    return tx.execute(statement.returning(_ROW.id)).first() is not None


def drain(tx: Session, by: str, now: datetime) -> SchedulerState:
    """Have the schedulers end what they began, and begin nothing more. Draining already: that stays."""
    tx.execute(update(_ROW).where(_ROW.draining_since.is_(None)).values(draining_since=now, draining_by=by))
    return state(tx)


def end_drain(tx: Session) -> bool:
    """Let the schedulers begin again; False when they were not draining."""
    statement = update(_ROW).where(_ROW.draining_since.is_not(None)).values(draining_since=None, draining_by=None)
    return tx.execute(statement.returning(_ROW.id)).first() is not None
