"""Fuses: which are blown and since when, and the ratings of those that guard a source.

A stream table without a row has a fuse that never blew; its rating is among its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import relations
from trickle.catalog.models import FuseRow, RelationRow
from trickle.catalog.records import Fuse, FuseReset, FuseState
from trickle.catalog.upsert import insert_into
from trickle.errors import InvalidOption

MODES = ("none", "fixed", "adaptive")
BASELINES = ("window", "ewma")


def put_rating(
    tx: Session,
    relation_id: int,
    *,
    mode: str,
    now: datetime,
    ceiling: int | None = None,
    max_ratio: float | None = None,
    sensitivity: float | None = None,
    window_size: int | None = None,
    baseline: str | None = None,
) -> Fuse:
    """Give a source a fuse, or another rating; a blown one stays blown."""
    _check_rating(mode, ceiling, max_ratio, sensitivity, window_size, baseline)
    rating: dict[str, Any] = {
        "mode": mode.upper(),
        "ceiling": ceiling,
        "max_ratio": max_ratio,
        "sensitivity": sensitivity,
        "window_size": window_size,
        "baselines": {"kind": baseline} if baseline else {},
        "updated_at": now,
    }
    statement = insert_into(tx.connection(), FuseRow)
    statement = statement.values(relation_id=relation_id, state=FuseState.ARMED, **rating)
    tx.execute(statement.on_conflict_do_update(index_elements=[FuseRow.relation_id], set_=rating))
    return get(tx, relation_id)


def remove(tx: Session, relation_id: int) -> bool:
    """Forget a fuse, its rating and whether it is blown; False when there was none."""
    statement = delete(FuseRow).where(FuseRow.relation_id == relation_id).returning(FuseRow.relation_id)
    return tx.execute(statement).first() is not None


def find(tx: Session, relation_id: int) -> Fuse | None:
    """The fuse of a relation, if it has a rating here or ever blew."""
    found = _select(tx, FuseRow.relation_id == relation_id)
    return found[0] if found else None


def get(tx: Session, relation_id: int) -> Fuse:
    """The fuse of a relation that must have one."""
    found = find(tx, relation_id)
    if found is None:
        raise relations.dropped(relation_id)
    return found


def listing(tx: Session, *, state: FuseState | None = None) -> list[Fuse]:
    """All fuses, or those in one state, by name."""
    return _select(tx) if state is None else _select(tx, FuseRow.state == state)


def blow(tx: Session, relation_id: int, now: datetime, reason: str, details: Mapping[str, object]) -> bool:
    """Blow a fuse; False when it was blown already, and then the first reason stands."""
    blown: dict[str, Any] = {
        "state": FuseState.BLOWN,
        "blown_at": now,
        "blow_reason": reason,
        "blow_details": dict(details),
        "updated_at": now,
    }
    statement = insert_into(tx.connection(), FuseRow).values(
        relation_id=relation_id, mode="NONE", baselines={}, **blown
    )
    statement = statement.on_conflict_do_update(
        index_elements=[FuseRow.relation_id], set_=blown, where=FuseRow.state == FuseState.ARMED
    )
    return tx.execute(statement.returning(FuseRow.relation_id)).first() is not None


def reset(tx: Session, relation_id: int, action: str, by: str | None, now: datetime) -> Fuse:
    """Arm a blown fuse again and note who decided what; the reason why it blew is forgotten."""
    chosen = check_action(action)
    armed: dict[str, Any] = {
        "state": FuseState.ARMED,
        "blown_at": None,
        "blow_reason": None,
        "blow_details": None,
        "last_reset_at": now,
        "last_reset_by": by,
        "last_reset_action": chosen,
        "updated_at": now,
    }
    statement = update(FuseRow).where(FuseRow.relation_id == relation_id, FuseRow.state == FuseState.BLOWN)
    if tx.execute(statement.values(**armed).returning(FuseRow.relation_id)).first() is None:
        raise InvalidOption(f"the fuse of {relations.by_id(tx, relation_id).name} is not blown")
    return get(tx, relation_id)


def check_action(action: str) -> FuseReset:
    """What is to happen to the changes that blew a fuse, from its name."""
    try:
        return FuseReset(action.strip().upper())
    except ValueError:
        raise InvalidOption(
            f"a fuse cannot be reset with {action!r}",
            detail="apply: let the changes through; reinitialize: compute the table anew from its sources;"
            " skip_changes: go on after the changes, without them",
            hint="action = 'apply', 'reinitialize' or 'skip_changes'",
        ) from None


def _check_rating(
    mode: str,
    ceiling: int | None,
    max_ratio: float | None,
    sensitivity: float | None,
    window_size: int | None,
    baseline: str | None,
) -> None:
    if mode not in MODES:
        raise InvalidOption(f"no fuse mode {mode!r}", hint="fuse modes: " + ", ".join(MODES))
    if baseline is not None and baseline not in BASELINES:
        raise InvalidOption(f"no fuse baseline {baseline!r}", hint="fuse baselines: " + ", ".join(BASELINES))
    lowest = {"ceiling": ceiling, "max_ratio": max_ratio, "sensitivity": sensitivity}
    for name, value in lowest.items():
        if value is not None and not value > 0:
            raise InvalidOption(f"the {name} of a fuse is above 0, not {value!r}")
    if window_size is not None and window_size < 2:
        raise InvalidOption(f"the window_size of a fuse is at least 2, not {window_size!r}")


def _select(tx: Session, *conditions: Any) -> list[Fuse]:
    statement = (
        select(FuseRow, RelationRow.schema_name, RelationRow.table_name)
        .join(RelationRow, RelationRow.id == FuseRow.relation_id)
        .where(*conditions)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    return [_record(row, TableName(schema, table)) for row, schema, table in tx.execute(statement)]


def _record(row: FuseRow, name: TableName) -> Fuse:
    return Fuse(
        relation_id=row.relation_id,
        name=name,
        mode=row.mode.lower(),
        state=FuseState(row.state),
        ceiling=row.ceiling,
        max_ratio=row.max_ratio,
        sensitivity=row.sensitivity,
        window_size=row.window_size,
        baselines=row.baselines,
        blown_at=row.blown_at,
        blow_reason=row.blow_reason,
        blow_details=row.blow_details,
        last_reset_at=row.last_reset_at,
        last_reset_by=row.last_reset_by,
        last_reset_action=None if row.last_reset_action is None else FuseReset(row.last_reset_action),
        updated_at=row.updated_at,
    )
