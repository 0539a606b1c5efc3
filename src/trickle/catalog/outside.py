"""What the catalog knows of what lies outside of the lake: databases, what is read from them, what lives there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trickle.catalog.records import Pin, Relation


class ReplicaStatus(StrEnum):
    """Whether a replica follows its source."""

    LOADING = "LOADING"
    """It is to be loaded, for the first time or anew."""
    ACTIVE = "ACTIVE"
    BROKEN = "BROKEN"
    """Its source is gone or was changed, and somebody has to decide."""


class PolledKind(StrEnum):
    """What a polled source is."""

    FILES = "files"
    FUNCTION = "function"
    """A function of the user's that gives a DataFrame."""


@dataclass(frozen=True)
class Database:
    """An attached PostgreSQL database."""

    id: int
    name: str
    # May hold a password: never printed.
    dsn: str = field(repr=False)
    cdc_mode: str
    """auto, trigger, wal or polling."""
    options: Mapping[str, Any]
    ingested_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Replica:
    """A table of an attached database in the lake. ``shape`` is what it was when it was loaded."""

    relation: Relation
    database_id: int
    oid: int
    schema: str
    table: str
    shape: Mapping[str, Any]
    status: ReplicaStatus
    problem: str | None
    loaded_at: datetime | None
    pin: Pin


@dataclass(frozen=True)
class Polled:
    """A source that is read whole from time to time, and kept as a replica."""

    relation: Relation
    kind: PolledKind
    definition: Mapping[str, Any]
    schedule: str
    status: ReplicaStatus
    problem: str | None
    polled_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    pin: Pin


@dataclass(frozen=True)
class Publication:
    """A stream table as a table of a PostgreSQL database."""

    id: int
    uid: str
    """What the database knows it by."""
    relation: Relation
    dsn: str = field(repr=False)
    """It may hold a password."""
    schema: str
    table: str
    version: int | None
    """The version that was last seen there; None before the first copy."""
    shown_uid: str | None
    """The incarnation of the stream table that this is a version of."""
    stream_version: int | None
    """The version that readers of the stream table see."""
    published_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    created_at: datetime

    @property
    def is_current(self) -> bool:
        """Whether it shows what readers of the stream table see, as far as the catalog knows."""
        return (self.version, self.shown_uid) == (self.stream_version, self.relation.uid)


@dataclass(frozen=True)
class Hosted:
    """A stream table that lives in an attached database, not in the lake; of nobody when ``relation_id`` is None."""

    id: int
    uid: str
    """What the database knows it by."""
    relation_id: int | None
    database_id: int
    schema: str
    table: str
    columns: Mapping[str, Any]
    """As Spark writes a schema in JSON."""
    text: str
    """The query as PostgreSQL was given it."""
