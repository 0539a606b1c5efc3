"""The catalog's own facts, stored settings, alerts and who has heard them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, Integer, Text
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.records import Severity
from trickle.catalog.types import FreeText, Identity, UtcDateTime, one_of


class MetaRow(Base):
    """The single row about the catalog. Older versions read ``migrated_by``: it keeps its place for ever."""

    __tablename__ = "meta"
    __table_args__ = (CheckConstraint("id = 1", name="single"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    warehouse_id: Mapped[str] = mapped_column(Text)
    format_version: Mapped[int] = mapped_column(Integer)
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    migrated_by: Mapped[str] = mapped_column(Text)
    migrated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SettingRow(Base):
    """A setting made with ``SET trickle.<name>``."""

    __tablename__ = "settings"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[str] = mapped_column(FreeText)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AlertRow(Base):
    """An alert; it outlives the relation that it speaks of."""

    __tablename__ = "alerts"
    __table_args__ = (
        check_in("severity", Severity),
        Index(None, "relation_id", "id"),
        Index(None, "created_at"),
        NEVER_REUSE,
    )

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    event: Mapped[str] = mapped_column(Text)
    relation_id: Mapped[int | None] = mapped_column(Identity, ForeignKey("relations.id", ondelete="SET NULL"))
    severity: Mapped[Severity] = mapped_column(one_of(Severity))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AlertCursorRow(Base):
    """The last alert that a sink has heard. Not a reference: alerts are purged."""

    __tablename__ = "alert_cursors"
    __table_args__ = (CheckConstraint("failures >= 0", name="failures"),)

    sink: Mapped[str] = mapped_column(Text, primary_key=True)
    alert_id: Mapped[int] = mapped_column(Identity)
    failures: Mapped[int] = mapped_column(Integer)
    last_error: Mapped[str | None] = mapped_column(FreeText)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
