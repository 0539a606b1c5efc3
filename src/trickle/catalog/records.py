"""What the catalog hands out: frozen records, free of the database they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trickle.algebra.names import TableName


class Kind(StrEnum):
    """What a relation is."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    STREAM_TABLE = "STREAM_TABLE"
    ATTACHED = "ATTACHED"

    @property
    def words(self) -> str:
        """The kind with its article, as a sentence needs it."""
        match self:
            case Kind.TABLE:
                return "a table"
            case Kind.VIEW:
                return "a view"
            case Kind.STREAM_TABLE:
                return "a stream table"
            case Kind.ATTACHED:
                return "an attached table"


class Status(StrEnum):
    """Whether a stream table is being kept."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    ERROR = "ERROR"


class RefreshMode(StrEnum):
    """How a stream table is asked to be kept."""

    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"
    AUTO = "AUTO"
    IMMEDIATE = "IMMEDIATE"


class Action(StrEnum):
    """What one refresh did."""

    NO_DATA = "NO_DATA"
    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"
    REINITIALIZE = "REINITIALIZE"
    SKIP = "SKIP"


class Outcome(StrEnum):
    """How one refresh ended."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class Initiator(StrEnum):
    """Who asked for a refresh."""

    INITIAL = "INITIAL"
    MANUAL = "MANUAL"
    SCHEDULER = "SCHEDULER"
    SELF_MONITOR = "SELF_MONITOR"


class Severity(StrEnum):
    """How much an alert matters."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True)
class Meta:
    """Facts about the catalog itself."""

    warehouse_id: str
    format_version: int
    created_by: str
    created_at: datetime
    migrated_by: str
    migrated_at: datetime


@dataclass(frozen=True)
class Relation:
    """A table, view, stream table or attached table. ``uid`` names the incarnation: a replaced table gets a new one."""

    id: int
    name: TableName
    kind: Kind
    uid: str
    location: str | None
    # May hold keys to an object store: never printed.
    storage_options: Mapping[str, str] = field(repr=False)
    query: str | None
    key: tuple[str, ...]
    comment: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class StreamTable:
    """A stream table's definition and state. ``version`` is the Delta version that readers see."""

    relation: Relation
    query: str
    schedule: str
    refresh_mode: RefreshMode
    effective_mode: str | None
    options: Mapping[str, object]
    status: Status
    populated: bool
    version: int | None
    refresh_number: int
    frontier: Mapping[int, str]
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    consecutive_errors: int
    last_error: str | None
    last_error_at: datetime | None
    needs_reinitialize: bool
    always_refresh: bool
    state: Mapping[str, Any]
    """How its contents are stored and where its inner tables stand (``refresh/state.py``)."""
    canonical: str | None
    """The query with its order-sensitive parts made definite; None when it has none."""
    updated_at: datetime

    @property
    def text(self) -> str:
        """The query that is run."""
        return self.canonical or self.query


@dataclass(frozen=True)
class Dependency:
    """One relation reads another; ``direct`` is false when it does so through a view only."""

    relation_id: int
    source_id: int
    source_kind: Kind
    columns: tuple[str, ...] = ()
    fingerprint: str | None = None
    direct: bool = True


@dataclass(frozen=True)
class RefreshRecord:
    """One row of the refresh history."""

    id: int
    relation_id: int
    name: str
    action: Action
    status: Outcome
    initiated_by: Initiator
    started_at: datetime
    ended_at: datetime | None
    rows_inserted: int
    rows_deleted: int
    version_before: int | None
    version_after: int | None
    duration_ms: float | None
    reason: str | None
    error_code: str | None
    error_message: str | None
    frontier: Mapping[str, str] | None
    details: Mapping[str, object]


@dataclass(frozen=True)
class IntentMember:
    """What one table of a unit is about to become. ``commit`` is None when only the frontier moves."""

    relation_id: int
    position: int
    commit: str | None
    refresh_number: int
    refresh_id: int | None
    result: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Intent:
    """A unit that will be committed: written before the first Delta commit, removed when all are finalised."""

    id: str
    created_at: datetime
    members: tuple[IntentMember, ...]


@dataclass(frozen=True)
class Alert:
    """Something that a person or a sink should hear about."""

    id: int
    event: str
    relation_id: int | None
    severity: Severity
    payload: Mapping[str, object]
    created_at: datetime
