"""Source gates: sources that somebody is loading and that must not be read yet."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import relations
from trickle.catalog.models import RelationRow, SourceGateRow
from trickle.catalog.records import SourceGate
from trickle.catalog.upsert import insert_into


def gate(tx: Session, source_id: int, by: str | None, reason: str | None, now: datetime) -> SourceGate:
    """Close the gate of a source. When it is closed already, who did it, when and why stay as they are."""
    closed: dict[str, Any] = {"gated": True, "gated_at": now, "ungated_at": None, "gated_by": by, "reason": reason}
    statement = insert_into(tx.connection(), SourceGateRow).values(source_id=source_id, **closed)
    is_open = SourceGateRow.gated.is_(False)
    tx.execute(statement.on_conflict_do_update(index_elements=[SourceGateRow.source_id], set_=closed, where=is_open))
    found = find(tx, source_id)
    if found is None:
        raise relations.dropped(source_id)
    return found


def ungate(tx: Session, source_id: int, now: datetime) -> bool:
    """Open the gate of a source; False when it was open."""
    statement = update(SourceGateRow).where(SourceGateRow.source_id == source_id, SourceGateRow.gated)
    statement = statement.values(gated=False, ungated_at=now)
    return tx.execute(statement.returning(SourceGateRow.source_id)).first() is not None


def find(tx: Session, source_id: int) -> SourceGate | None:
    """The gate of a source; None when it was never closed."""
    found = _select(tx, SourceGateRow.source_id == source_id)
    return found[0] if found else None


def listing(tx: Session) -> list[SourceGate]:
    """All gates that were ever closed, by name; ``gated`` tells which still are."""
    return _select(tx)


def _select(tx: Session, *conditions: Any) -> list[SourceGate]:
    statement = (
        select(SourceGateRow, RelationRow.schema_name, RelationRow.table_name)
        .join(RelationRow, RelationRow.id == SourceGateRow.source_id)
        .where(*conditions)
        .order_by(RelationRow.schema_key, RelationRow.table_key)
    )
    return [
        SourceGate(
            source_id=row.source_id,
            name=TableName(schema, table),
            gated=row.gated,
            gated_at=row.gated_at,
            ungated_at=row.ungated_at,
            gated_by=row.gated_by,
            reason=row.reason,
        )
        for row, schema, table in tx.execute(statement)
    ]
