"""Stream tables that are kept in PostgreSQL too, and sources that are looked at from time to time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.outside import PolledKind, ReplicaStatus
from trickle.catalog.types import FreeText, Identity, UtcDateTime, one_of


class PublicationRow(Base):
    """A stream table as a table of a PostgreSQL database. The address may hold a password.

    How far it is, is said by that database; ``version`` of the incarnation ``shown_uid`` is what was last seen there.
    """

    __tablename__ = "publications"
    __table_args__ = (UniqueConstraint("uid"), Index(None, "relation_id"), NEVER_REUSE)

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    uid: Mapped[str] = mapped_column(Text)
    relation_id: Mapped[int] = mapped_column(Identity, ForeignKey("relations.id", ondelete="CASCADE"))
    dsn: Mapped[str] = mapped_column(Text)
    schema_name: Mapped[str] = mapped_column(Text)
    table_name: Mapped[str] = mapped_column(Text)
    version: Mapped[int | None] = mapped_column(BigInteger)
    shown_uid: Mapped[str | None] = mapped_column(Text)
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(FreeText)
    last_error_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class PolledRow(Base):
    """A source that is read whole from time to time, and kept as a replica."""

    __tablename__ = "polled"
    __table_args__ = (check_in("kind", PolledKind), check_in("status", ReplicaStatus))

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    kind: Mapped[PolledKind] = mapped_column(one_of(PolledKind))
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    schedule: Mapped[str] = mapped_column(Text)
    status: Mapped[ReplicaStatus] = mapped_column(one_of(ReplicaStatus))
    problem: Mapped[str | None] = mapped_column(FreeText)
    polled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(FreeText)
    last_error_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
