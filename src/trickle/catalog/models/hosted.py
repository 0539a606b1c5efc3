"""Stream tables that live in an attached PostgreSQL database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base
from trickle.catalog.types import Identity, UtcDateTime


class HostedRow(Base):
    """A table of PostgreSQL that is a stream table, or was to be one, or was: then nothing refers to it any more."""

    __tablename__ = "hosted"
    __table_args__ = (UniqueConstraint("uid"), UniqueConstraint("relation_id"), Index(None, "database_id"), NEVER_REUSE)

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    uid: Mapped[str] = mapped_column(Text)
    relation_id: Mapped[int | None] = mapped_column(Identity, ForeignKey("relations.id", ondelete="SET NULL"))
    database_id: Mapped[int] = mapped_column(Identity, ForeignKey("databases.id"))
    schema_name: Mapped[str] = mapped_column(Text)
    table_name: Mapped[str] = mapped_column(Text)
    columns: Mapped[dict[str, Any]] = mapped_column(JSON)
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
