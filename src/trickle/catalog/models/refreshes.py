"""Refreshes: what happened, and what is about to happen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.records import Action, Initiator, Outcome
from trickle.catalog.types import FreeText, Identity, UtcDateTime, one_of

_RUNNING = text("status = 'RUNNING'")


class RefreshRow(Base):
    """One refresh of one stream table; goes with the stream table when that is dropped."""

    __tablename__ = "refresh_history"
    __table_args__ = (
        check_in("action", Action),
        check_in("status", Outcome),
        check_in("initiated_by", Initiator),
        CheckConstraint("(status = 'RUNNING') = (ended_at IS NULL)", name="running_until_ended"),
        Index(None, "relation_id", "id"),
        Index(None, "started_at"),
        Index("ix_refresh_history_running", "relation_id", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    relation_id: Mapped[int] = mapped_column(Identity, ForeignKey("relations.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(Text)
    action: Mapped[Action] = mapped_column(one_of(Action))
    status: Mapped[Outcome] = mapped_column(one_of(Outcome))
    initiated_by: Mapped[Initiator] = mapped_column(one_of(Initiator))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    rows_inserted: Mapped[int] = mapped_column(BigInteger)
    rows_deleted: Mapped[int] = mapped_column(BigInteger)
    version_before: Mapped[int | None] = mapped_column(BigInteger)
    version_after: Mapped[int | None] = mapped_column(BigInteger)
    duration_ms: Mapped[float | None] = mapped_column(Float(53))
    reason: Mapped[str | None] = mapped_column(FreeText)
    error_code: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(FreeText)
    frontier: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    details: Mapped[dict[str, Any]] = mapped_column(JSON)


class IntentRow(Base):
    """A unit between the decision to commit and the end of its commits."""

    __tablename__ = "intents"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class IntentMemberRow(Base):
    """One table of a unit. A table is in one open intent at most, and cannot be dropped while it is."""

    __tablename__ = "intent_members"
    __table_args__ = (UniqueConstraint("relation_id"), UniqueConstraint("intent_id", "position"))

    intent_id: Mapped[str] = mapped_column(Text, ForeignKey("intents.id", ondelete="CASCADE"), primary_key=True)
    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id"), primary_key=True, autoincrement=False
    )
    position: Mapped[int] = mapped_column(Integer)
    commit: Mapped[str | None] = mapped_column(Text)
    refresh_number: Mapped[int] = mapped_column(BigInteger)
    refresh_id: Mapped[int | None] = mapped_column(Identity, ForeignKey("refresh_history.id"))
    result: Mapped[dict[str, Any]] = mapped_column(JSON)
