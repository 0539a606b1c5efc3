"""Intents: units that will be committed, written down before the first Delta commit.

Whoever holds an intent finalises it: ``claim`` comes first in the finalising transaction, and ``remove`` last. One
that was removed first would have a unit wait for the end of that transaction while it holds a table that the
transaction waits for.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from trickle.catalog.failures import unique_or
from trickle.catalog.models import IntentMemberRow, IntentRow
from trickle.catalog.records import Intent, IntentMember
from trickle.errors import ConcurrentModification, InternalError


def add(tx: Session, members: Iterable[IntentMember], now: datetime, intent_id: str | None = None) -> Intent:
    """Write an intent; ConcurrentModification when one of its tables is in another."""
    unit = tuple(sorted(members, key=lambda member: member.position))
    if not unit:
        raise InternalError("an intent without members")
    intent = Intent(intent_id or uuid.uuid4().hex, now, unit)
    with unique_or(tx, _held):
        tx.execute(insert(IntentRow).values(id=intent.id, created_at=now))
        # In one order for everybody, so that overlapping units wait for each other and do not deadlock.
        tx.execute(insert(IntentMemberRow), [_columns(intent.id, m) for m in sorted(unit, key=lambda m: m.relation_id)])
    return intent


def pending(tx: Session, relation_ids: Iterable[int] | None = None) -> list[Intent]:
    """Open intents, oldest first, each whole: all, or those with one of these tables in them."""
    intents = select(IntentRow).order_by(IntentRow.created_at, IntentRow.id)
    members = select(IntentMemberRow).order_by(IntentMemberRow.position)
    if relation_ids is not None:
        wanted = select(IntentMemberRow.intent_id).where(IntentMemberRow.relation_id.in_(set(relation_ids)))
        intents = intents.where(IntentRow.id.in_(wanted))
        members = members.where(IntentMemberRow.intent_id.in_(wanted))
    found = tx.execute(intents).scalars().all()
    if not found:
        return []
    units: defaultdict[str, list[IntentMember]] = defaultdict(list)
    for row in tx.execute(members).scalars():
        units[row.intent_id].append(_member(row))
    # On PostgreSQL an intent may be finalised between the two statements of a writer.
    return [Intent(row.id, row.created_at, tuple(units[row.id])) for row in found if row.id in units]


def claim(tx: Session, intent_id: str) -> bool:
    """Hold an intent against other sessions until the transaction ends; False when one of them has ended it."""
    return tx.execute(select(IntentRow.id).where(IntentRow.id == intent_id).with_for_update()).first() is not None


def remove(tx: Session, intent_id: str) -> bool:
    """Take an intent out; False when another session already did."""
    statement = delete(IntentRow).where(IntentRow.id == intent_id).returning(IntentRow.id)
    return tx.execute(statement).first() is not None


def _held() -> ConcurrentModification:
    return ConcurrentModification(
        "another session is committing one of the tables", hint="wait for it to end, then refresh again"
    )


def _columns(intent_id: str, member: IntentMember) -> dict[str, object]:
    return {
        "intent_id": intent_id,
        "relation_id": member.relation_id,
        "position": member.position,
        "commit": member.commit,
        "refresh_number": member.refresh_number,
        "refresh_id": member.refresh_id,
        "result": dict(member.result),
    }


def _member(row: IntentMemberRow) -> IntentMember:
    return IntentMember(
        relation_id=row.relation_id,
        position=row.position,
        commit=row.commit,
        refresh_number=row.refresh_number,
        refresh_id=row.refresh_id,
        result=row.result,
    )
