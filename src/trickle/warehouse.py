"""A warehouse: where tables lie, the catalog that knows them, the Spark that computes them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import preferences
from trickle.catalog.records import Pin, Relation
from trickle.catalog.store import Catalog
from trickle.clock import Clock
from trickle.engine import Engine
from trickle.lake.commit import TableCommit
from trickle.lake.location import Location
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.settings import Settings, combine

_PLAIN_FOLDER = re.compile(r"[a-z0-9][a-z0-9_]{0,63}\Z")


class Immediate(Protocol):
    """What lets IMMEDIATE stream tables change together with the tables that they follow."""

    def land(
        self,
        warehouse: Warehouse,
        table: Relation,
        pin: Pin,
        snapshot: Snapshot,
        prepared: Prepared,
        commit: TableCommit,
    ) -> None:
        """Commit the staged change of a pinned table, by this commit, and of all that follow it as one unit."""
        ...

    def catch_up(self, warehouse: Warehouse, table: Relation) -> None:
        """Take in what the log of a pinned table has beyond its pin."""
        ...

    def publish(self, warehouse: Warehouse, table: Relation) -> None:
        """Bring what changed with a pinned table to where it is published; raises nothing: the change has happened."""
        ...


@dataclass(frozen=True)
class Warehouse:
    """Everything that acts on a warehouse is handed one of these."""

    root: Location
    catalog: Catalog
    engine: Engine
    clock: Clock
    given_settings: Settings
    connect_settings: Mapping[str, object] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    immediate: Immediate | None = None
    """Handed in from above: statements are run by code that does not know stream tables."""

    def settings(self, tx: Session) -> Settings:
        """The settings in force: what the catalog stores on top of files and environment, arguments last."""
        return combine(combine(self.given_settings, preferences.stored(tx)), self.connect_settings)

    def place_for(self, name: TableName) -> Location:
        """A fresh folder for a table: its own name where that is plain and free, else with a suffix."""
        schema, table = name.schema_key, name.table_key
        schema = schema if _PLAIN_FOLDER.match(schema) else _slug(schema)
        plain = self.root.child(schema, table)
        if _PLAIN_FOLDER.match(table) and not any(True for _ in plain.walk()):
            return plain
        return self.root.child(schema, f"{_slug(table)}-{uuid.uuid4().hex[:12]}")

    def location_of(self, relation: Relation) -> Location:
        """Where a relation's Delta table lies."""
        assert relation.location is not None, f"{relation.name} has no storage"
        if relation.location.startswith("./"):
            return self.root.child(*relation.location[2:].split("/"))
        return Location.of(relation.location, dict(relation.storage_options) or dict(self.storage_options))

    def relative(self, location: Location) -> str:
        """How the catalog keeps a location: relative inside the warehouse, so that the warehouse can be moved."""
        prefix = self.root.uri.rstrip("/") + "/"
        return "./" + location.uri[len(prefix) :] if location.uri.startswith(prefix) else location.uri


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text)[:40].strip("_") or "table"
