"""What the scheduler keeps: declared groups, jobs, leases, what it was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, Index, Integer, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.records import Isolation, JobStatus
from trickle.catalog.types import FreeText, Identity, UtcDateTime

JOB_KINDS = ("SINGLETON", "ATOMIC_GROUP", "REFRESH_GROUP", "IMMEDIATE_CLOSURE", "CYCLE")
_OPEN = text("status IN ('QUEUED', 'RUNNING')")


class RefreshGroupRow(Base):
    """Stream tables that are refreshed and committed together because someone said so."""

    __tablename__ = "refresh_groups"
    __table_args__ = (UniqueConstraint("name_key"), check_in("isolation", Isolation), NEVER_REUSE)

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    isolation: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class RefreshGroupMemberRow(Base):
    """A stream table in a declared group; it can be in one only."""

    __tablename__ = "refresh_group_members"
    __table_args__ = (UniqueConstraint("relation_id"),)

    group_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("refresh_groups.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("stream_tables.relation_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )


class JobRow(Base):
    """One unit handed to a worker. A unit has one open job at most."""

    __tablename__ = "jobs"
    __table_args__ = (
        check_in("kind", JOB_KINDS),
        check_in("status", JobStatus),
        CheckConstraint("attempt > 0", name="attempt"),
        Index("uq_jobs_open_unit_key", "unit_key", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
        Index(None, "status", "enqueued_at"),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    unit_key: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    members: Mapped[list[int]] = mapped_column(JSON)
    status: Mapped[str] = mapped_column(Text)
    attempt: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(Text)
    lease_token: Mapped[int | None] = mapped_column(BigInteger)
    enqueued_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    detail: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    error_message: Mapped[str | None] = mapped_column(FreeText)


class LeaseRow(Base):
    """Who may act for a while. The token grows with each new holder and fences off the old one."""

    __tablename__ = "leases"
    __table_args__ = (CheckConstraint("token > 0", name="token"),)

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    holder: Mapped[str] = mapped_column(Text)
    token: Mapped[int] = mapped_column(BigInteger)
    acquired_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SchedulerStateRow(Base):
    """The single row that every scheduler reads first.

    ``ddl_number`` grows with every change of a definition, in the same transaction: triggers see to that, whoever
    writes (revision 0003).
    """

    __tablename__ = "scheduler_state"
    __table_args__ = (
        CheckConstraint("id = 1", name="single"),
        CheckConstraint("(paused_at IS NULL) = (paused_by IS NULL)", name="paused_by_someone"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    ddl_number: Mapped[int] = mapped_column(BigInteger)
    paused_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    paused_by: Mapped[str | None] = mapped_column(FreeText)
    pause_reason: Mapped[str | None] = mapped_column(FreeText)
    draining_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    draining_by: Mapped[str | None] = mapped_column(FreeText)
