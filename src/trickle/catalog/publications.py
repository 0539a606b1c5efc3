"""Publications: stream tables that are kept as tables of PostgreSQL databases too."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import delete, insert, or_, select
from sqlalchemy import update as sql_update
from sqlalchemy.orm import Session

from trickle.catalog import relations
from trickle.catalog.models import PublicationRow, RelationRow, StreamTableRow
from trickle.catalog.outside import Publication


class PublicationFields(TypedDict, total=False):
    """What ``update`` can change."""

    dsn: str
    schema_name: str
    table_name: str
    version: int | None
    shown_uid: str | None
    published_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None


def add(tx: Session, relation_id: int, *, uid: str, dsn: str, schema: str, table: str, now: datetime) -> Publication:
    """Enter a publication that nothing was written to yet."""
    values = {
        "uid": uid,
        "relation_id": relation_id,
        "dsn": dsn,
        "schema_name": schema,
        "table_name": table,
        "created_at": now,
    }
    made = tx.execute(insert(PublicationRow).values(**values).returning(PublicationRow.id)).scalar_one()
    return get(tx, made)


def get(tx: Session, publication_id: int) -> Publication:
    """The publication with this id; ConcurrentModification when it was withdrawn since."""
    found = _select(tx, PublicationRow.id == publication_id)
    if not found:
        raise relations.dropped(publication_id)
    return found[0]


def listing(tx: Session, relation_ids: Collection[int] | None = None) -> list[Publication]:
    """All publications, or those of some stream tables, by name."""
    return _select(tx, *(() if relation_ids is None else (PublicationRow.relation_id.in_(set(relation_ids)),)))


def behind(tx: Session) -> list[Publication]:
    """Those that do not show what readers of the stream table see, as far as the catalog knows, or that failed.

    A stream table that was in another place meanwhile counts its versions anew. Without those whose first copy was
    never completed: what they should look like is known to who asked for them.
    """
    return _select(
        tx,
        PublicationRow.version.is_not(None),
        or_(
            PublicationRow.version.is_distinct_from(StreamTableRow.version),
            PublicationRow.shown_uid.is_distinct_from(RelationRow.uid),
            PublicationRow.last_error.is_not(None),
        ),
    )


def are_there(tx: Session, relation_id: int) -> bool:
    """Whether a relation is published anywhere."""
    statement = select(PublicationRow.id).where(PublicationRow.relation_id == relation_id).limit(1)
    return tx.execute(statement).first() is not None


def update(tx: Session, publication_id: int, **fields: Unpack[PublicationFields]) -> None:
    """Change some fields; nothing happens when it was withdrawn meanwhile."""
    tx.execute(sql_update(PublicationRow).where(PublicationRow.id == publication_id).values(**fields))


def remove(tx: Session, publication_id: int) -> None:
    """Withdraw a publication."""
    tx.execute(delete(PublicationRow).where(PublicationRow.id == publication_id))


def _select(tx: Session, *conditions: Any) -> list[Publication]:
    statement = (
        select(PublicationRow, RelationRow, StreamTableRow.version)
        .join(RelationRow, RelationRow.id == PublicationRow.relation_id)
        .join(StreamTableRow, StreamTableRow.relation_id == PublicationRow.relation_id)
        .where(*conditions)
        .order_by(RelationRow.schema_key, RelationRow.table_key, PublicationRow.id)
    )
    return [
        Publication(
            id=row.id,
            uid=row.uid,
            relation=relations.record(relation),
            dsn=row.dsn,
            schema=row.schema_name,
            table=row.table_name,
            version=row.version,
            shown_uid=row.shown_uid,
            stream_version=version,
            published_at=row.published_at,
            last_error=row.last_error,
            last_error_at=row.last_error_at,
            created_at=row.created_at,
        )
        for row, relation, version in tx.execute(statement)
    ]
