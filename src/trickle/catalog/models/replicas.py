"""Versions that readers see, and tables of PostgreSQL databases that are kept as replicas."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from trickle.catalog.models.base import NEVER_REUSE, Base, check_in
from trickle.catalog.outside import ReplicaStatus
from trickle.catalog.types import FreeText, Identity, UtcDateTime, one_of


class PinRow(Base):
    """The version of a lake table that readers through Trickle see, where that is not the newest of its log."""

    __tablename__ = "pins"
    __table_args__ = (CheckConstraint("number >= 0", name="number"),)

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    version: Mapped[int | None] = mapped_column(BigInteger)
    number: Mapped[int] = mapped_column(BigInteger)
    position: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class DatabaseRow(Base):
    """An attached PostgreSQL database. Its address may hold a password."""

    __tablename__ = "databases"
    __table_args__ = (UniqueConstraint("name_key"), NEVER_REUSE)

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    dsn: Mapped[str] = mapped_column(Text)
    cdc_mode: Mapped[str] = mapped_column(Text)
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    ingested_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_error: Mapped[str | None] = mapped_column(FreeText)
    last_error_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ReplicaRow(Base):
    """A table of a PostgreSQL database in the lake."""

    __tablename__ = "replicas"
    __table_args__ = (
        UniqueConstraint("database_id", "oid"),
        check_in("status", ReplicaStatus),
        Index(None, "database_id"),
    )

    relation_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("relations.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    database_id: Mapped[int] = mapped_column(Identity, ForeignKey("databases.id"))
    oid: Mapped[int] = mapped_column(BigInteger)
    schema_name: Mapped[str] = mapped_column(Text)
    table_name: Mapped[str] = mapped_column(Text)
    shape: Mapped[dict[str, Any]] = mapped_column(JSON)
    status: Mapped[ReplicaStatus] = mapped_column(one_of(ReplicaStatus))
    problem: Mapped[str | None] = mapped_column(FreeText)
    loaded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
