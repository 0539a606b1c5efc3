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
    REPLICA = "REPLICA"

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
            case Kind.REPLICA:
                return "a replica"


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


class Event(StrEnum):
    """What alerts tell of."""

    STALE_DATA = "stale_data"
    REFRESH_FAILED = "refresh_failed"
    AUTO_SUSPENDED = "auto_suspended"
    RESUMED = "resumed"
    SCHEDULER_FALLING_BEHIND = "scheduler_falling_behind"
    SLOT_LAG_WARNING = "slot_lag_warning"
    CDC_TRANSITION = "cdc_transition"
    APPEND_ONLY_REVERTED = "append_only_reverted"
    FUSE_BLOWN = "fuse_blown"
    WATERMARK_STUCK = "watermark_stuck"
    BUFFER_GROWTH_WARNING = "buffer_growth_warning"
    SPILL_RISK = "spill_risk"
    REINITIALIZE_NEEDED = "reinitialize_needed"
    SELF_MONITOR_ANOMALY = "self_monitor_anomaly"

    @property
    def severity(self) -> Severity:
        """How much it matters when nobody says otherwise."""
        match self:
            case Event.FUSE_BLOWN:
                return Severity.CRITICAL
            case Event.REFRESH_FAILED | Event.AUTO_SUSPENDED:
                return Severity.ERROR
            case Event.RESUMED | Event.CDC_TRANSITION:
                return Severity.INFO
            case _:
                return Severity.WARNING


class FuseState(StrEnum):
    """Whether a fuse lets changes through."""

    ARMED = "ARMED"
    BLOWN = "BLOWN"


class FuseReset(StrEnum):
    """What happens to the changes that blew a fuse."""

    APPLY = "APPLY"
    REINITIALIZE = "REINITIALIZE"
    SKIP_CHANGES = "SKIP_CHANGES"


class Isolation(StrEnum):
    """What the members of a refresh group see of their sources."""

    READ_COMMITTED = "READ_COMMITTED"
    REPEATABLE_READ = "REPEATABLE_READ"


class JobStatus(StrEnum):
    """How far a job is."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    RETRYABLE_FAILED = "RETRYABLE_FAILED"
    PERMANENT_FAILED = "PERMANENT_FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_open(self) -> bool:
        return self in (JobStatus.QUEUED, JobStatus.RUNNING)


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
class Pin:
    """The version of a lake table that readers see; None before there is one."""

    relation_id: int
    version: int | None
    number: int
    """Grows with every unit that moves it."""
    position: str | None
    """Where its source stood."""


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


@dataclass(frozen=True, slots=True)
class Schedulable:
    """What the scheduler needs to know of a stream table in every tick."""

    id: int
    name: TableName
    frontier: Mapping[int, str]
    schedule: str
    options: Mapping[str, Any]
    status: Status
    refresh_mode: RefreshMode
    populated: bool
    version: int | None
    last_refresh_at: datetime | None
    data_timestamp: datetime | None
    needs_reinitialize: bool
    always_refresh: bool
    consecutive_errors: int


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


@dataclass(frozen=True)
class AlertCursor:
    """How far a sink has heard the alerts, and what is wrong with it."""

    sink: str
    alert_id: int
    failures: int
    """Deliveries that failed in a row."""
    last_error: str | None
    updated_at: datetime


@dataclass(frozen=True)
class Fuse:
    """The state of a fuse, and the rating of one that guards a source.

    The rating of a stream table's own fuse is among the table's options; its mode here is ``none``.
    """

    relation_id: int
    name: TableName
    mode: str
    """none, fixed or adaptive."""
    state: FuseState
    ceiling: int | None
    max_ratio: float | None
    sensitivity: float | None
    window_size: int | None
    baselines: Mapping[str, Any]
    """``kind``: window or ewma, when given."""
    blown_at: datetime | None
    blow_reason: str | None
    blow_details: Mapping[str, Any] | None
    last_reset_at: datetime | None
    last_reset_by: str | None
    last_reset_action: FuseReset | None
    updated_at: datetime

    @property
    def baseline(self) -> str | None:
        """The kind of baseline, when given."""
        return self.baselines.get("kind")

    def passes_once(self, last_completed: datetime | None) -> bool:
        """Whether it was reset to let the changes through and no refresh was completed since."""
        if self.state is FuseState.BLOWN or self.last_reset_at is None:
            return False
        if self.last_reset_action not in (FuseReset.APPLY, FuseReset.REINITIALIZE):
            return False
        return last_completed is None or self.last_reset_at > last_completed


@dataclass(frozen=True)
class SourceGate:
    """Whether a source is being loaded; ``gated_at`` and the rest tell of the last time that it was."""

    source_id: int
    name: TableName
    gated: bool
    gated_at: datetime | None
    ungated_at: datetime | None
    gated_by: str | None
    reason: str | None


@dataclass(frozen=True)
class WatermarkRecord:
    """How far a source is complete, and its position when its loader said so."""

    source_id: int
    name: TableName
    watermark: datetime
    position: str | None
    advanced_by: str | None
    updated_at: datetime


@dataclass(frozen=True)
class WatermarkGroupRecord:
    """Sources whose watermarks must lie within a tolerance of each other."""

    id: int
    name: str
    mode: str
    """gate or hold_back."""
    tolerance_seconds: float
    source_ids: tuple[int, ...]
    sources: tuple[TableName, ...]
    created_at: datetime


@dataclass(frozen=True)
class UserGate:
    """A gate that a user registered."""

    id: int
    name: str
    kind: str
    """sql or python."""
    text: str
    """A SQL predicate, or ``module:function``."""
    tables: tuple[int, ...] | None
    """The stream tables that it is asked about; None for all."""
    created_at: datetime
    created_by: str | None


@dataclass(frozen=True)
class RefreshGroup:
    """Stream tables that are refreshed together because somebody said so."""

    id: int
    name: str
    isolation: Isolation
    member_ids: tuple[int, ...]
    members: tuple[TableName, ...]
    created_at: datetime


@dataclass(frozen=True)
class Job:
    """One unit that was handed to a worker."""

    id: int
    unit_key: str
    kind: str
    members: tuple[int, ...]
    status: JobStatus
    attempt: int
    worker: str | None
    lease_token: int | None
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    detail: Mapping[str, Any]
    error_message: str | None


@dataclass(frozen=True)
class Lease:
    """Who may act, until when. A greater token fences off a smaller one."""

    name: str
    holder: str
    token: int
    acquired_at: datetime
    expires_at: datetime

    def is_held(self, now: datetime) -> bool:
        """Whether somebody holds it."""
        return now < self.expires_at


@dataclass(frozen=True)
class SchedulerState:
    """What all schedulers of the warehouse were told."""

    ddl_number: int
    """Grows whenever a definition changes."""
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    draining_since: datetime | None
    draining_by: str | None

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def draining(self) -> bool:
        return self.draining_since is not None
