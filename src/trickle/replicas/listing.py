"""What people ask about attached databases: rows, read from the catalog, and from the servers where that is said."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from trickle.catalog import databases, polled
from trickle.catalog.outside import Database, Replica
from trickle.errors import TrickleError
from trickle.postgres.connect import Connection, connected, shown
from trickle.replicas import shape
from trickle.replicas.captures import SLOT, TRIGGER, WAL, capture_of, mode_of, wal_of
from trickle.replicas.locks import one_at_a_time
from trickle.replicas.switching import is_transitioning, reason_of
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
    """TRIGGER, TRANSITIONING, WAL or POLLING."""
    reason: str | None


@dataclass(frozen=True)
class CdcHealthRow:
    """How a capture is doing, as its server says."""

    database: str
    source: str
    state: str
    message: str


@dataclass(frozen=True)
class SlotRow:
    """How a replication slot is doing, as its server says."""

    database: str
    slot: str
    state: str
    message: str
    bytes: int | None
    """WAL that the server keeps for it."""


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
    ] + _polled(warehouse)


def _polled(warehouse: Warehouse) -> list[SourceRow]:
    with warehouse.catalog.read() as tx:
        found = polled.listing(tx)
    return [
        SourceRow(
            name=str(one.relation.name),
            database="",
            address=str(one.definition.get("path", "")),
            source=str(one.definition.get("format") or one.definition.get("function")),
            status=one.status.value,
            problem=one.problem,
            key=None,
            version=one.pin.version,
            position=one.pin.position,
            loaded_at=one.polled_at,
            ingested_at=one.polled_at,
            last_error=one.last_error,
        )
        for one in found
    ]


def cdc_status(warehouse: Warehouse) -> list[CdcStatusRow]:
    """How each replica is captured, and why not from the WAL where that was left open."""
    return [
        CdcStatusRow(
            name=str(replica.relation.name),
            database=database.name,
            cdc_mode=database.cdc_mode,
            state="TRANSITIONING" if is_transitioning(database) else mode_of(database).upper(),
            reason=replica.problem or reason_of(database),
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


def slot_health(warehouse: Warehouse) -> list[SlotRow]:
    """How much each server keeps for its slot. Asks the servers."""
    found = []
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    for database, _ in _grouped(warehouse, None):
        if mode_of(database) != WAL:
            continue
        slot = str(database.options[SLOT])
        try:
            with connected(database.dsn) as connection:
                health = wal_of(database, connection, settings).slot_health()
        except TrickleError as error:
            health = Health(slot, State.CRITICAL, error.message)
        found.append(SlotRow(database.name, slot, health.state.value, health.message, health.bytes))
    return found


def rebuild_cdc_triggers(warehouse: Warehouse, names: Collection[str] | None = None) -> list[str]:
    """Put back triggers that somebody removed or disabled; the sources that they were put back on.

    What was written meanwhile was not captured, so these replicas are loaded anew by the next ingest.
    """
    with warehouse.catalog.read() as tx:
        found = databases.listing(tx) if names is None else [databases.get(tx, name) for name in names]
    rebuilt: list[str] = []
    for database in found:
        with connected(database.dsn) as connection, one_at_a_time(connection, database.name):
            rebuilt += _rebuilt(warehouse, database.name, connection)
    return rebuilt


def _rebuilt(warehouse: Warehouse, name: str, connection: Connection) -> list[str]:
    with warehouse.catalog.read() as tx:
        database = databases.get(tx, name)
        settings = warehouse.settings(tx)
        replicas = databases.replicas(tx, database.id)
    capture = capture_of(database, connection, settings)
    rebuilt = []
    for replica in replicas if capture.mode == TRIGGER else ():
        table = shape.from_json(replica.oid, replica.schema, replica.table, replica.shape)
        (found,) = capture.health([table])
        if found.state is State.OK:
            continue
        # First: what waits in the buffer goes when it is made again.
        with warehouse.catalog.write() as tx:
            databases.mark_lost(tx, replica.relation.id, found.message)
        capture.arm(table)
        rebuilt.append(str(replica.relation.name))
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
