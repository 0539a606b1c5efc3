"""What people ask about publications, read from the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trickle.catalog import publications
from trickle.catalog.outside import Publication
from trickle.postgres.connect import shown
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class PublicationRow:
    """A stream table that is kept in PostgreSQL too."""

    name: str
    address: str
    """Without its password."""
    table: str
    status: str
    """CURRENT, BEHIND, FAILING, or UNFINISHED when the first copy was never completed."""
    version: int | None
    """The version of the stream table that the published one shows."""
    published_at: datetime | None
    last_error: str | None
    last_error_at: datetime | None


def list_publications(warehouse: Warehouse) -> list[PublicationRow]:
    """All publications, by stream table."""
    with warehouse.catalog.read() as tx:
        found = publications.listing(tx)
    return [row_of(publication) for publication in found]


def row_of(publication: Publication) -> PublicationRow:
    """A publication for people."""
    return PublicationRow(
        name=str(publication.relation.name),
        address=shown(publication.dsn),
        table=f"{publication.schema}.{publication.table}",
        status=_status(publication),
        version=publication.version,
        published_at=publication.published_at,
        last_error=publication.last_error,
        last_error_at=publication.last_error_at,
    )


def _status(publication: Publication) -> str:
    if publication.version is None:
        return "UNFINISHED"
    if publication.last_error is not None:
        return "FAILING"
    return "CURRENT" if publication.is_current else "BEHIND"
