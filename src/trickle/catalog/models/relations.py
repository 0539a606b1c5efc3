"""Relations, stream tables, what reads what, and how far each stream table has read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, Index, Integer, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.records import Kind, RefreshMode, Status
from trickle.catalog.types import FreeText, Identity, UtcDateTime, one_of


class RelationRow(Base):
    """Anything that has a name. Names are unique without regard to case."""

    __tablename__ = "relations"
    __table_args__ = (
        UniqueConstraint("schema_key", "table_key"),
        UniqueConstraint("uid"),
        check_in("kind", Kind),
        CheckConstraint("kind <> 'VIEW' OR query IS NOT NULL", name="view_has_query"),
        CheckConstraint("kind <> 'ATTACHED' OR location IS NOT NULL", name="attached_has_location"),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    schema_name: Mapped[str] = mapped_column(Text)
    table_name: Mapped[str] = mapped_column(Text)
    schema_key: Mapped[str] = mapped_column(Text)
    table_key: Mapped[str] = mapped_column(Text)
    kind: Mapped[Kind] = mapped_column(one_of(Kind))
    uid: Mapped[str] = mapped_column(Text)
    location: Mapped[str | None] = mapped_column(Text)
    storage_options: Mapped[dict[str, str]] = mapped_column(JSON)
    query: Mapped[str | None] = mapped_column(Text)
    key_columns: Mapped[list[str]] = mapped_column(JSON)
    comment: Mapped[str | None] = mapped_column(FreeText)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class StreamTableRow(Base):
    """How a stream table is kept and where it stands. Its query is the relation's."""

    __tablename__ = "stream_tables"
    __table_args__ = (
        check_in("refresh_mode", RefreshMode),
        check_in("status", Status),
        CheckConstraint("refresh_number >= 0", name="refresh_number"),
        CheckConstraint("consecutive_errors >= 0", name="consecutive_errors"),
        Index(None, "status"),
    )

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    schedule: Mapped[str] = mapped_column(Text)
    refresh_mode: Mapped[RefreshMode] = mapped_column(one_of(RefreshMode))
    effective_mode: Mapped[str | None] = mapped_column(Text)
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    status: Mapped[Status] = mapped_column(one_of(Status))
    populated: Mapped[bool]
    version: Mapped[int | None] = mapped_column(BigInteger)
    refresh_number: Mapped[int] = mapped_column(BigInteger)
    data_timestamp: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_refresh_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    consecutive_errors: Mapped[int] = mapped_column(Integer)
    last_error: Mapped[str | None] = mapped_column(FreeText)
    last_error_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    needs_reinitialize: Mapped[bool]
    always_refresh: Mapped[bool]
    state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    canonical: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class DependencyRow(Base):
    """A view or stream table reads a source. A source that is read cannot be removed."""

    __tablename__ = "dependencies"
    __table_args__ = (Index(None, "source_id"),)

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    source_id: Mapped[int] = mapped_column(Identity, ForeignKey("relations.id"), primary_key=True, autoincrement=False)
    columns: Mapped[list[str]] = mapped_column(JSON)
    fingerprint: Mapped[str | None] = mapped_column(Text)
    direct: Mapped[bool]


class FrontierRow(Base):
    """The position in one source that a stream table's contents reflect."""

    __tablename__ = "frontiers"
    __table_args__ = (Index(None, "source_id"),)

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("stream_tables.relation_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    source_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    position: Mapped[str] = mapped_column(Text)
