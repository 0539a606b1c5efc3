"""What a story about the catalog begins with."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import Dependency, Kind, RefreshMode, Relation, StreamTable, relations, streams


def named(*parts: str) -> TableName:
    return TableName.of(parts)


class Given:
    """Enters what a story begins with."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def later(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def table(self, tx: Session, name: str, kind: Kind = Kind.TABLE, **fields: Any) -> Relation:
        defaults: dict[str, Any] = {"location": f"/warehouse/{name}", "uid": uuid.uuid4().hex, "now": self.now}
        return relations.add(tx, name=TableName.of(name.split(".")), kind=kind, **defaults | fields)

    def stream(self, tx: Session, name: str, reads: Iterable[Relation] = (), **fields: Any) -> StreamTable:
        relation = self.table(tx, name, Kind.STREAM_TABLE)
        sources = [Dependency(relation.id, source.id, source.kind, ("id",)) for source in reads]
        relations.set_dependencies(tx, relation.id, sources)
        defaults: dict[str, Any] = {
            "query": "SELECT 1",
            "schedule": "5s",
            "refresh_mode": RefreshMode.AUTO,
            "options": {},
            "always_refresh": False,
            "now": self.now,
        }
        return streams.add(tx, relation.id, **defaults | fields)
