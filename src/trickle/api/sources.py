"""The part of the public interface that is about attached PostgreSQL databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trickle.algebra.names import TableName
from trickle.immediate.postgres import listing as immediate
from trickle.immediate.postgres.hosting import abandon, settle_all
from trickle.replicas import attach, listing, polling
from trickle.replicas.ingest import IngestResult, ingest, ingest_polled
from trickle.replicas.listing import BufferRow, CdcHealthRow, CdcStatusRow, SlotRow, SourceRow
from trickle.sources import polling as reading
from trickle.sql import names
from trickle.warehouse import Warehouse

PROCEDURES = (
    "attach_files",
    "attach_function",
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
        schedule: str | None = None,
    ) -> list[SourceRow]:
        """Make tables of a PostgreSQL database sources: loaded now, followed from then on.

        They are called ``name.table`` here. Without ``tables``, all of the schema. With ``cdc_mode`` polling they are
        read whole on the ``schedule``, a duration; then they may be foreign tables, views and materialized views.
        """
        made = attach.attach_postgres(
            self.warehouse, name, dsn, tables=tables, schema=schema, cdc_mode=cdc_mode, schedule=schedule
        )
        attached = {str(replica.relation.name) for replica in made}
        return [row for row in self.list_sources() if row.name in attached]

    def attach_files(
        self,
        name: str,
        path: str | Path,
        *,
        format: str = "parquet",
        options: Mapping[str, str] | str | None = None,
        schedule: str | None = None,
    ) -> SourceRow:
        """Make files that Spark reads (a file, a folder, a pattern) a source: read now, and again on the ``schedule``.

        ``format`` and ``options`` as Spark has them (as one text: ``header=false, sep=;``); CSV has a header unless the
        options say otherwise.
        """
        table, given = names.table_name(name), polling.options_of(options)
        polling.attach_files(self.warehouse, table, str(path), format, options=given, schedule=schedule)
        return self._source(table)

    def attach_function(
        self, name: str, function: reading.PollFunction | str, *, schedule: str | None = None
    ) -> SourceRow:
        """Make a function a source: it is handed a Spark session and gives a DataFrame, now and on the ``schedule``.

        One that can be imported, or is given as ``module:function``, is known to every process.
        """
        table = names.table_name(name)
        polling.attach_function(self.warehouse, table, function, schedule=schedule)
        return self._source(table)

    def _source(self, name: TableName) -> SourceRow:
        return next(row for row in self.list_sources() if names.table_name(row.name) == name)

    def detach(
        self, name: str, *, tables: Sequence[str] | str | None = None, cascade: bool = False, force: bool = False
    ) -> list[str]:
        """Let go of a database, or of some of its tables; the names that went. Nothing is left behind at the source.

        ``cascade`` drops what reads them too; ``force`` goes on when the server does not answer.
        """
        gone = None if tables is not None else polling.detach(self.warehouse, name, cascade=cascade)
        if gone is None:
            gone = attach.detach(self.warehouse, name, tables=tables, cascade=cascade, force=force)
            settle_all(self.warehouse)
            if force:
                abandon(self.warehouse, name)
            attach.forget_if_empty(self.warehouse, name)
        return [str(relation.name) for relation in gone]

    def ingest(self, name: str | None = None) -> list[IngestResult]:
        """Bring the replicas of all databases, or of one, to the present; those that moved. Also one polled source."""
        one = None if name is None else polling.named(self.warehouse, name)
        if one is not None:
            return ingest_polled(self.warehouse, [one.relation.id])
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
