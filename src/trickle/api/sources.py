"""The part of the public interface that is about attached PostgreSQL databases."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.immediate.postgres import listing as immediate
from trickle.immediate.postgres.hosting import abandon, settle_all
from trickle.replicas import attach, listing
from trickle.replicas.ingest import IngestResult, ingest
from trickle.replicas.listing import BufferRow, CdcHealthRow, CdcStatusRow, SlotRow, SourceRow
from trickle.warehouse import Warehouse

PROCEDURES = (
    "attach_postgres",
    "cdc_status",
    "change_buffer_sizes",
    "check_cdc_health",
    "detach",
    "ingest",
    "list_sources",
    "rebuild_cdc_triggers",
    "slot_health",
)


class Sources:
    """Attached databases, their replicas, and how capture is doing."""

    warehouse: Warehouse

    def attach_postgres(
        self,
        name: str,
        dsn: str,
        *,
        tables: Sequence[str] | str | None = None,
        schema: str = "public",
        cdc_mode: str = "auto",
    ) -> list[SourceRow]:
        """Make tables of a PostgreSQL database sources: loaded now, followed from then on.

        They are called ``name.table`` here. Without ``tables``, all of the schema.
        """
        made = attach.attach_postgres(self.warehouse, name, dsn, tables=tables, schema=schema, cdc_mode=cdc_mode)
        attached = {str(replica.relation.name) for replica in made}
        return [row for row in self.list_sources() if row.name in attached]

    def detach(
        self, name: str, *, tables: Sequence[str] | str | None = None, cascade: bool = False, force: bool = False
    ) -> list[str]:
        """Let go of a database, or of some of its tables; the names that went. Nothing is left behind at the source.

        ``cascade`` drops what reads them too; ``force`` goes on when the server does not answer.
        """
        gone = attach.detach(self.warehouse, name, tables=tables, cascade=cascade, force=force)
        settle_all(self.warehouse)
        if force:
            abandon(self.warehouse, name)
        attach.forget_if_empty(self.warehouse, name)
        return [str(relation.name) for relation in gone]

    def ingest(self, name: str | None = None) -> list[IngestResult]:
        """Bring the replicas of all databases, or of one, to the present; those that moved."""
        return ingest(self.warehouse, None if name is None else [name])

    def list_sources(self) -> list[SourceRow]:
        """All replicas and where they stand, without asking their servers."""
        return listing.list_sources(self.warehouse)

    def cdc_status(self) -> list[CdcStatusRow]:
        """How the changes of each replica are captured."""
        return listing.cdc_status(self.warehouse)

    def check_cdc_health(self) -> list[CdcHealthRow]:
        """How each capture is doing, and each IMMEDIATE stream table in PostgreSQL, as the servers say."""
        return [*listing.check_cdc_health(self.warehouse), *immediate.health(self.warehouse)]

    def slot_health(self) -> list[SlotRow]:
        """How much WAL the servers keep for replication slots, as they say."""
        return listing.slot_health(self.warehouse)

    def change_buffer_sizes(self) -> list[BufferRow]:
        """How much waits at the servers to be ingested."""
        return listing.change_buffer_sizes(self.warehouse)

    def rebuild_cdc_triggers(self, name: str | None = None) -> list[str]:
        """Put back triggers that somebody removed or disabled; the replicas that are loaded anew for it, and the
        IMMEDIATE stream tables that were computed anew.
        """
        wanted = None if name is None else [name]
        return [
            *listing.rebuild_cdc_triggers(self.warehouse, wanted),
            *immediate.repair_all(self.warehouse, wanted),
        ]
