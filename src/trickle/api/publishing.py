"""The part of the public interface that is about stream tables in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.publish import listing, publishing
from trickle.publish.listing import PublicationRow
from trickle.sql import names
from trickle.warehouse import Warehouse

PROCEDURES = ("list_publications", "publish", "unpublish")


class Publishing:
    """Publications: stream tables that are kept as tables of PostgreSQL databases too."""

    warehouse: Warehouse

    def publish(
        self,
        name: str,
        dsn: str,
        *,
        table: str | None = None,
        key: Sequence[str] | str | None = None,
        replace: bool = False,
    ) -> PublicationRow:
        """Keep a stream table as a PostgreSQL table too: copied now, changed after every refresh.

        ``table`` is ``schema.table``; by default the stream table's own name, in ``public``. ``key`` becomes its
        primary key. A table that is there must have the same columns, and no rows unless ``replace``.
        """
        columns = [part.strip() for part in key.split(",")] if isinstance(key, str) else key or ()
        made = publishing.publish(
            self.warehouse, names.table_name(name), dsn, table=table, key=columns, replace=replace
        )
        return listing.row_of(made)

    def unpublish(self, name: str, *, table: str | None = None, drop: bool = False, force: bool = False) -> list[str]:
        """Keep a stream table in PostgreSQL no longer; the tables that were let go of. They stay, unless ``drop``.

        ``force`` goes on when the server does not answer.
        """
        gone = publishing.unpublish(self.warehouse, names.table_name(name), table=table, drop=drop, force=force)
        return [f"{one.schema}.{one.table}" for one in gone]

    def list_publications(self) -> list[PublicationRow]:
        """All publications and how they stand, without asking their servers."""
        return listing.list_publications(self.warehouse)
