"""The catalog: what the warehouse holds and how far each stream table is, in SQLite or PostgreSQL."""

from trickle.catalog import alerts, history, intents, preferences, relations, streams
from trickle.catalog.records import (
    Action,
    Alert,
    Dependency,
    Initiator,
    Intent,
    IntentMember,
    Kind,
    Meta,
    Outcome,
    RefreshMode,
    RefreshRecord,
    Relation,
    Severity,
    Status,
    StreamTable,
)
from trickle.catalog.store import Catalog
from trickle.catalog.urls import file_url

__all__ = [
    "Action",
    "Alert",
    "Catalog",
    "Dependency",
    "Initiator",
    "Intent",
    "IntentMember",
    "Kind",
    "Meta",
    "Outcome",
    "RefreshMode",
    "RefreshRecord",
    "Relation",
    "Severity",
    "Status",
    "StreamTable",
    "alerts",
    "file_url",
    "history",
    "intents",
    "preferences",
    "relations",
    "streams",
]
