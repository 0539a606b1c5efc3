"""Many stream tables that have nothing to do, entered in the catalog without ever being computed."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from sqlalchemy import insert

from trickle import Trickle
from trickle.catalog.models import DependencyRow, FrontierRow, RelationRow, StreamTableRow
from trickle.catalog.records import Kind, RefreshMode, Status
from trickle.sources.lake import LakePosition


def add_resting(t: Trickle, tables: int, sources: int, schedule: str = "1s") -> None:
    """Base tables with one commit each, and stream tables over them that are up to date; no Spark."""
    now = t.warehouse.clock.now()
    root = Path(t.warehouse.root.uri, "default")
    write_deltalake(root / "source_0", pa.table({"id": pa.array([], pa.int64())}))
    for number in range(1, sources):
        shutil.copytree(root / "source_0", root / f"source_{number}")
    first = sources + 1
    ids = range(first, first + tables)
    base = {relation_id: (relation_id - first) % sources + 1 for relation_id in ids}
    # Row by row through the functions of the catalog, a thousand would take longer than what is measured.
    with t.warehouse.catalog.write() as tx:
        tx.execute(
            insert(RelationRow),
            [_relation(n + 1, f"source_{n}", Kind.TABLE, now) for n in range(sources)]
            + [_relation(i, f"resting_{i - first}", Kind.STREAM_TABLE, now) for i in ids],
        )
        tx.execute(insert(StreamTableRow), [_stream(relation_id, schedule, now) for relation_id in ids])
        tx.execute(
            insert(FrontierRow),
            [{"relation_id": i, "source_id": s, "position": str(LakePosition(_uid(s), 0))} for i, s in base.items()],
        )
        tx.execute(
            insert(DependencyRow),
            [
                {"relation_id": i, "source_id": s, "columns": ["id"], "fingerprint": None, "direct": True}
                for i, s in base.items()
            ],
        )


def _uid(relation_id: int) -> str:
    return f"{relation_id:032x}"


def _relation(relation_id: int, name: str, kind: Kind, now: datetime) -> dict[str, Any]:
    return {
        "id": relation_id,
        "schema_name": "default",
        "table_name": name,
        "schema_key": "default",
        "table_key": name,
        "kind": kind,
        "uid": _uid(relation_id),
        "location": f"./default/{name}",
        "storage_options": {},
        "query": "SELECT 1" if kind is Kind.STREAM_TABLE else None,
        "key_columns": [],
        "comment": None,
        "created_at": now,
        "updated_at": now,
    }


def _stream(relation_id: int, schedule: str, now: datetime) -> dict[str, Any]:
    return {
        "relation_id": relation_id,
        "schedule": schedule,
        "refresh_mode": RefreshMode.AUTO,
        "options": {},
        "status": Status.ACTIVE,
        "populated": True,
        "version": 0,
        "refresh_number": 1,
        "data_timestamp": now,
        "last_refresh_at": now,
        "consecutive_errors": 0,
        "needs_reinitialize": False,
        "always_refresh": False,
        "updated_at": now,
    }
