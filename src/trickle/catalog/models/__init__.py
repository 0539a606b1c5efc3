"""The catalog's tables, split by meaning. The migrations create them; a test holds the two equal."""

from trickle.catalog.models.base import Base
from trickle.catalog.models.gates import (
    FuseRow,
    SourceGateRow,
    UserGateRow,
    WatermarkGroupMemberRow,
    WatermarkGroupRow,
    WatermarkHistoryRow,
    WatermarkRow,
)
from trickle.catalog.models.hosted import HostedRow
from trickle.catalog.models.publications import PolledRow, PublicationRow
from trickle.catalog.models.refreshes import IntentMemberRow, IntentRow, RefreshRow
from trickle.catalog.models.relations import DependencyRow, FrontierRow, RelationRow, StreamTableRow
from trickle.catalog.models.replicas import DatabaseRow, PinRow, ReplicaRow
from trickle.catalog.models.scheduling import (
    JobRow,
    LeaseRow,
    RefreshGroupMemberRow,
    RefreshGroupRow,
    SchedulerStateRow,
)
from trickle.catalog.models.system import AlertCursorRow, AlertRow, MetaRow, SettingRow

__all__ = [
    "AlertCursorRow",
    "AlertRow",
    "Base",
    "DatabaseRow",
    "DependencyRow",
    "FrontierRow",
    "FuseRow",
    "HostedRow",
    "IntentMemberRow",
    "IntentRow",
    "JobRow",
    "LeaseRow",
    "MetaRow",
    "PinRow",
    "PolledRow",
    "PublicationRow",
    "RefreshGroupMemberRow",
    "RefreshGroupRow",
    "RefreshRow",
    "RelationRow",
    "ReplicaRow",
    "SchedulerStateRow",
    "SettingRow",
    "SourceGateRow",
    "StreamTableRow",
    "UserGateRow",
    "WatermarkGroupMemberRow",
    "WatermarkGroupRow",
    "WatermarkHistoryRow",
    "WatermarkRow",
]
