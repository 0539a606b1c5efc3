"""Leases: who may act for a while, with a token that fences off whoever held it before.

A holder that was paused for too long does not know that another took over. So whatever it writes is preceded, in the
same transaction, by ``check`` with its token: the row stays locked until that transaction ends, and nobody can take the
lease in between. Row locks only: a pooler may give every transaction another connection.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from trickle.catalog.models import LeaseRow
from trickle.catalog.records import Lease
from trickle.catalog.upsert import insert_into
from trickle.errors import TransientError


class LeaseLost(TransientError):
    """Another process has taken over what this one was doing."""

    code = "LEASE_LOST"

    def __init__(self, name: str, token: int, holder: Lease | None) -> None:
        taken = f"it is held by {holder.holder} with token {holder.token}" if holder else "nobody ever held it"
        super().__init__(
            f"another process has taken over the lease {name!r}", detail=f"token {token} is not valid: {taken}"
        )


def acquire(tx: Session, name: str, holder: str, ttl: timedelta, now: datetime) -> Lease | None:
    """Take a lease that is free, has run out, or is one's own already; None while another holds it."""
    fresh = {"holder": holder, "token": 1, "acquired_at": now, "expires_at": now + ttl}
    first = insert_into(tx.connection(), LeaseRow).values(name=name, **fresh)
    first = first.on_conflict_do_nothing(index_elements=[LeaseRow.name])
    if tx.execute(first.returning(LeaseRow.name)).first() is not None:
        return Lease(name, holder, 1, now, now + ttl)
    found = _locked(tx, name)
    if found is None:
        return None
    if found.is_held(now):
        return renew(tx, name, found.token, ttl, now) if found.holder == holder else None
    fresh["token"] = found.token + 1
    tx.execute(update(LeaseRow).where(LeaseRow.name == name).values(**fresh))
    return Lease(name, holder, found.token + 1, now, now + ttl)


def renew(tx: Session, name: str, token: int, ttl: timedelta, now: datetime) -> Lease:
    """Hold a lease for longer; LeaseLost when another has taken it. One that ran out and nobody took is still held."""
    found = _locked(tx, name)
    if found is None or found.token != token:
        raise LeaseLost(name, token, found)
    until = max(found.expires_at, now + ttl)
    tx.execute(update(LeaseRow).where(LeaseRow.name == name).values(expires_at=until))
    return Lease(name, found.holder, token, found.acquired_at, until)


def release(tx: Session, name: str, token: int, now: datetime) -> bool:
    """Let others take a lease at once; False when it was no longer one's own."""
    # The token is spent with it: a thread that is still at work is fenced off from now on.
    statement = update(LeaseRow).where(LeaseRow.name == name, LeaseRow.token == token)
    statement = statement.values(token=token + 1, expires_at=now)
    return tx.execute(statement.returning(LeaseRow.name)).first() is not None


def check(tx: Session, name: str, token: int) -> None:
    """Refuse to go on when another has taken the lease; nobody can until the transaction ends."""
    statement = select(LeaseRow).where(LeaseRow.name == name)
    # Shared: the workers of one holder do not wait for each other.
    row = tx.execute(statement.with_for_update(read=True)).scalar_one_or_none()
    if row is None or row.token != token:
        raise LeaseLost(name, token, None if row is None else _record(row))


def find(tx: Session, name: str) -> Lease | None:
    """A lease as it stands, held or not; None when nobody ever held it."""
    row = tx.execute(select(LeaseRow).where(LeaseRow.name == name)).scalar_one_or_none()
    return None if row is None else _record(row)


def _locked(tx: Session, name: str) -> Lease | None:
    row = tx.execute(select(LeaseRow).where(LeaseRow.name == name).with_for_update()).scalar_one_or_none()
    return None if row is None else _record(row)


def _record(row: LeaseRow) -> Lease:
    return Lease(row.name, row.holder, row.token, row.acquired_at, row.expires_at)
