"""What people ask about attached databases: rows, read from the catalog, and from the servers where that is said."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from trickle.catalog import databases
from trickle.catalog.records import Database, Replica
from trickle.errors import TrickleError
from trickle.postgres.connect import connected, shown
from trickle.replicas import shape
from trickle.replicas.captures import capture_of
from trickle.sources.postgres.capture import Capture, Health, State
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class SourceRow:
    """A replica and where it comes from."""

    name: str
    database: str
    address: str
    """Without its password."""
    source: str
    status: str
    problem: str | None
    key: str | None
    version: int | None
    position: str | None
    loaded_at: datetime | None
    ingested_at: datetime | None
    last_error: str | None


@dataclass(frozen=True)
class CdcStatusRow:
    """How the changes of a replica are captured."""

    name: str
    database: str
    cdc_mode: str
    """As it was asked for."""
    state: str
    """TRIGGER, TRANSITIONING or WAL."""
    reason: str | None


@dataclass(frozen=True)
class CdcHealthRow:
    """How a capture is doing, as its server says."""

    database: str
    source: str
    state: str
    message: str


@dataclass(frozen=True)
class BufferRow:
    """What waits at a server to be ingested."""

    database: str
    source: str
    rows: int | None
    bytes: int | None


def list_sources(warehouse: Warehouse) -> list[SourceRow]:
    """All replicas, by database and name."""
    return [
        SourceRow(
            name=str(replica.relation.name),
            database=database.name,
            address=shown(database.dsn),
            source=_known_name(replica),
            status=replica.status.value,
            problem=replica.problem,
            key=", ".join(replica.relation.key) or None,
            version=replica.pin.version,
            position=replica.pin.position,
            loaded_at=replica.loaded_at,
            ingested_at=database.ingested_at,
            last_error=database.last_error,
        )
        for database, replica in _all(warehouse)
    ]


def cdc_status(warehouse: Warehouse) -> list[CdcStatusRow]:
    """How each replica is captured, from its position."""
    return [
        CdcStatusRow(
            name=str(replica.relation.name),
            database=database.name,
            cdc_mode=database.cdc_mode,
            state=(replica.pin.position or "trigger:").partition(":")[0].upper(),
            reason=replica.problem,
        )
        for database, replica in _all(warehouse)
    ]


def check_cdc_health(warehouse: Warehouse) -> list[CdcHealthRow]:
    """How each capture is doing. Asks the servers; one that does not answer is told as such."""
    return [
        CdcHealthRow(database.name, one.what, one.state.value, one.message)
        for database, found in _health(warehouse)
        for one in found
    ]


def change_buffer_sizes(warehouse: Warehouse) -> list[BufferRow]:
    """How much waits to be ingested. Asks the servers."""
    return [
        BufferRow(database.name, one.what, one.rows, one.bytes)
        for database, found in _health(warehouse)
        for one in found
    ]


def rebuild_cdc_triggers(warehouse: Warehouse, names: Collection[str] | None = None) -> list[str]:
    """Put back triggers that somebody removed or disabled; the sources that they were put back on.

    What was written meanwhile was not captured, so these replicas are loaded anew by the next ingest.
    """
    rebuilt = []
    for database, replicas in _grouped(warehouse, names):
        with warehouse.catalog.read() as tx:
            settings = warehouse.settings(tx)
        with connected(database.dsn) as connection:
            capture = capture_of(database, connection, settings)
            for replica in replicas:
                table = shape.from_json(replica.oid, replica.schema, replica.table, replica.shape)
                (found,) = capture.health([table])
                if found.state is State.OK:
                    continue
                capture.arm(table)
                rebuilt.append(str(replica.relation.name))
                with warehouse.catalog.write() as tx:
                    databases.mark_lost(tx, replica.relation.id, found.message)
    return rebuilt


def _health(warehouse: Warehouse) -> Iterator[tuple[Database, list[Health]]]:
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    for database, replicas in _grouped(warehouse, None):
        tables = [shape.from_json(one.oid, one.schema, one.table, one.shape) for one in replicas]
        try:
            with connected(database.dsn) as connection:
                capture: Capture = capture_of(database, connection, settings)
                yield database, capture.health(tables)
        except TrickleError as error:
            yield database, [Health(shown(database.dsn), State.CRITICAL, error.message)]


def _grouped(warehouse: Warehouse, names: Collection[str] | None) -> list[tuple[Database, list[Replica]]]:
    with warehouse.catalog.read() as tx:
        found = databases.listing(tx) if names is None else [databases.get(tx, name) for name in names]
        return [(database, databases.replicas(tx, database.id)) for database in found]


def _all(warehouse: Warehouse) -> list[tuple[Database, Replica]]:
    return [(database, replica) for database, replicas in _grouped(warehouse, None) for replica in replicas]


def _known_name(replica: Replica) -> str:
    return shape.from_json(replica.oid, replica.schema, replica.table, replica.shape).shown
