"""What holds a refresh back: fuses, watermarks, source gates, gates of the users."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, Float, ForeignKey, Index, Integer, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.records import FuseReset, FuseState
from trickle.catalog.types import FreeText, Identity, UtcDateTime

FUSE_MODES = ("NONE", "FIXED", "ADAPTIVE")
WATERMARK_MODES = ("gate", "hold_back")
USER_GATE_KINDS = ("sql", "python")


class FuseRow(Base):
    """The fuse of a stream table, or of a source: then it guards everything downstream."""

    __tablename__ = "fuses"
    __table_args__ = (
        check_in("mode", FUSE_MODES),
        check_in("state", FuseState),
        check_in("last_reset_action", FuseReset),
        CheckConstraint("(state = 'BLOWN') = (blown_at IS NOT NULL)", name="blown_since"),
        CheckConstraint("ceiling > 0", name="ceiling"),
        CheckConstraint("max_ratio > 0", name="max_ratio"),
        CheckConstraint("sensitivity > 0", name="sensitivity"),
        CheckConstraint("window_size > 1", name="window_size"),
        Index(None, "state"),
    )

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    mode: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    ceiling: Mapped[int | None] = mapped_column(BigInteger)
    max_ratio: Mapped[float | None] = mapped_column(Float(53))
    sensitivity: Mapped[float | None] = mapped_column(Float(53))
    window_size: Mapped[int | None] = mapped_column(Integer)
    baselines: Mapped[dict[str, Any]] = mapped_column(JSON)
    blown_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    blow_reason: Mapped[str | None] = mapped_column(FreeText)
    blow_details: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    last_reset_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_reset_by: Mapped[str | None] = mapped_column(FreeText)
    last_reset_action: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SourceGateRow(Base):
    """Whether a source is being loaded and must not be read yet."""

    __tablename__ = "source_gates"

    source_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    gated: Mapped[bool]
    gated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ungated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    gated_by: Mapped[str | None] = mapped_column(FreeText)
    reason: Mapped[str | None] = mapped_column(FreeText)


class WatermarkRow(Base):
    """How far a source is complete, as its loader says, and its position when that was said."""

    __tablename__ = "watermarks"

    source_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    watermark: Mapped[datetime] = mapped_column(UtcDateTime)
    position: Mapped[str | None] = mapped_column(Text)
    advanced_by: Mapped[str | None] = mapped_column(FreeText)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class WatermarkHistoryRow(Base):
    """Every watermark that a source had, so that a group can be held back to what is complete everywhere."""

    __tablename__ = "watermark_history"

    source_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    watermark: Mapped[datetime] = mapped_column(UtcDateTime, primary_key=True)
    position: Mapped[str | None] = mapped_column(Text)
    advanced_at: Mapped[datetime] = mapped_column(UtcDateTime)
    advanced_by: Mapped[str | None] = mapped_column(FreeText)


class WatermarkGroupRow(Base):
    """Sources whose watermarks must lie within a tolerance of each other."""

    __tablename__ = "watermark_groups"
    __table_args__ = (
        UniqueConstraint("name_key"),
        CheckConstraint("tolerance_seconds >= 0", name="tolerance_seconds"),
        check_in("mode", WATERMARK_MODES),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    tolerance_seconds: Mapped[float] = mapped_column(Float(53))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    mode: Mapped[str] = mapped_column(Text)


class WatermarkGroupMemberRow(Base):
    """A source in a watermark group."""

    __tablename__ = "watermark_group_members"
    __table_args__ = (Index(None, "source_id"),)

    group_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("watermark_groups.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    source_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )


class UserGateRow(Base):
    """A gate that a user registered: a SQL predicate or a Python function."""

    __tablename__ = "user_gates"
    __table_args__ = (
        UniqueConstraint("name_key"),
        check_in("kind", USER_GATE_KINDS),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    tables: Mapped[list[int] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str | None] = mapped_column(FreeText)
