"""Which capture a database has, and how it gets another one.

All tables of a database have the same capture: they are ingested to one position, and positions of two captures cannot
be compared. ``auto`` prefers the WAL, which costs writers least, and takes triggers while one of the tables does not
allow it.

The catalog says which capture counts (``capture``) and, while another one may be armed beside it, which
(``leaving``): that one is disarmed by whoever comes next. So a process may die at any moment of a transition
(``sources/postgres/transition.py``), and nothing is left behind for longer than until the next ingest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from psycopg import errors

from trickle.catalog import alerts, databases, pins
from trickle.catalog.outside import Database, Replica, ReplicaStatus
from trickle.catalog.records import Event, Severity
from trickle.errors import ConcurrentModification, InternalError, SourceRefused, TrickleError
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable
from trickle.replicas import shape
from trickle.replicas.captures import CAPTURE, POLLING, SLOT, TRIGGER, WAL, capture_named, mode_of, wal_of
from trickle.replicas.loading import Fence
from trickle.settings import Settings
from trickle.sources.postgres import slots, transition
from trickle.sources.postgres.capture import Capture, State
from trickle.warehouse import Warehouse

PATIENCE = timedelta(minutes=10)
"""How long to wait before it is looked again whether the WAL can be had, or what is left can be disarmed."""

LEAVING = "leaving"
LOOKED_AT = "looked_at"
TIDIED_AT = "tidied_at"
"""When something was in the way of disarming what is left."""
REASON = "reason"
LAG = "lag"

_WORSE = {(State.OK, State.WARNING), (State.OK, State.CRITICAL), (State.WARNING, State.CRITICAL)}

Bring = Callable[[Capture, str], object]
"""Ingests all replicas through a capture up to a position."""


@dataclass(frozen=True)
class Switch:
    """What a transition works on; the lock on the database is held."""

    warehouse: Warehouse
    database: Database
    connection: Connection
    settings: Settings
    fence: Fence | None = None

    @property
    def counts(self) -> str:
        return mode_of(self.database)

    def capture(self, mode: str) -> Capture:
        return capture_named(mode, self.database, self.connection, self.settings)

    def replicas(self) -> list[Replica]:
        with self.warehouse.catalog.read() as tx:
            return databases.replicas(tx, self.database.id)

    def noted(self, **options: object) -> Switch:
        """The same with other options of the database; None takes one away."""
        with self.warehouse.catalog.write() as tx:
            known = databases.get(tx, self.database.name)
            changed = {name: value for name, value in {**known.options, **options}.items() if value is not None}
            databases.update(tx, known.id, options=changed)
            return replace(self, database=databases.get(tx, known.name))


def choose(switch: Switch, tables: Sequence[SourceTable]) -> Database:
    """The database with a capture that can take these tables in, beside those that it has. SourceRefused when there is
    none.
    """
    wanted = switch.database.cdc_mode
    if wanted == TRIGGER:
        return switch.database
    if wanted == POLLING:
        return switch.noted(**{CAPTURE: POLLING}).database
    hindered = _obstacles(switch, tables)
    if hindered and wanted == WAL:
        raise SourceRefused(
            "not all tables can be captured from the WAL", detail="; ".join(hindered), hint="use cdc_mode = 'auto'"
        )
    if switch.replicas():
        if hindered and switch.counts == WAL:
            raise SourceRefused(
                f"{switch.database.name} is captured from the WAL, and not all of these tables can be",
                detail="; ".join(hindered),
                hint="change the tables, or attach them under another name with cdc_mode = 'trigger'",
            )
        return switch.database
    return switch.noted(
        **{CAPTURE: TRIGGER if hindered else WAL, REASON: "; ".join(hindered) or None, LOOKED_AT: _now(switch)}
    ).database


def is_transitioning(database: Database) -> bool:
    """Whether two captures may be armed."""
    return LEAVING in database.options


def reason_of(database: Database) -> str | None:
    """Why a database that may be captured from the WAL is not."""
    found = database.options.get(REASON)
    return str(found) if found and mode_of(database) != WAL and database.cdc_mode != TRIGGER else None


def fall_back(switch: Switch, tables: Sequence[SourceTable]) -> Database:
    """Tables are to be loaded anew. Where the WAL cannot take them any more and ``auto`` leaves the choice, the whole
    database goes back to triggers, and all of it is loaded anew.
    """
    if switch.counts != WAL or switch.database.cdc_mode == WAL or not tables:
        return switch.database
    hindered = _obstacles(switch, tables)
    if not hindered:
        return switch.database
    reason = "; ".join(hindered)
    now = switch.warehouse.clock.now()
    with switch.warehouse.catalog.write() as tx:
        known = databases.get(tx, switch.database.name)
        for replica in databases.replicas(tx, known.id):
            if replica.status is ReplicaStatus.ACTIVE:
                databases.update_replica(tx, replica.relation.id, status=ReplicaStatus.LOADING, problem=reason)
        fallen = {CAPTURE: TRIGGER, LEAVING: WAL, REASON: reason, LOOKED_AT: now.isoformat()}
        databases.update(tx, known.id, options={**known.options, **fallen})
        payload = {"database": known.name, "from": WAL, "to": TRIGGER, "detail": reason}
        alerts.add(tx, event=Event.CDC_TRANSITION.value, payload=payload, now=now)
        switch = replace(switch, database=databases.get(tx, known.name))
    return tidy(switch)


def tidy(switch: Switch) -> Database:
    """Disarm what a transition left armed. To drop a trigger nobody may be reading its table, and some read for hours:
    then it stays, which does no harm, and is tried again later.
    """
    leaving = switch.database.options.get(LEAVING)
    if leaving is None or not _is_due(switch, TIDIED_AT):
        return switch.database
    try:
        transition.disarm(switch.capture(str(leaving)), _tables(switch.replicas()))
    except (errors.LockNotAvailable, ConcurrentModification):
        return switch.noted(**{TIDIED_AT: _now(switch)}).database
    return switch.noted(**{LEAVING: None, TIDIED_AT: None}).database


def disarm_all(switch: Switch, replicas: Sequence[Replica], *, last: bool) -> None:
    """Leave nothing at the source that captures these, whichever capture it is of. When they are the ``last`` ones,
    slot and publication go by their name: nobody would ask for them again, and the server would keep WAL for ever.
    """
    for mode in dict.fromkeys([switch.counts, str(switch.database.options.get(LEAVING, switch.counts))]):
        transition.disarm(switch.capture(mode), _tables(replicas))
    name = switch.database.options.get(SLOT)
    if last and name is not None:
        slots.drop_slot(switch.connection, str(name))
        slots.drop_publication(switch.connection, str(name))


def reconsider(switch: Switch, bring: Bring) -> Database:
    """From triggers to the WAL where that is wanted and can be had; looked at now and then."""
    replicas = switch.replicas()
    if switch.database.cdc_mode == TRIGGER or switch.counts == WAL or not replicas or not _is_due(switch, LOOKED_AT):
        return switch.database
    if is_transitioning(switch.database):
        # Another transition has not come to its end.
        return switch.database
    if any(replica.status is not ReplicaStatus.ACTIVE for replica in replicas):
        return switch.database
    decision = transition.decide(
        transition.Facts(transition.Phase.TRIGGER, wants_wal=True, obstacles=_obstacles(switch, _tables(replicas)))
    )
    switch = switch.noted(**{LOOKED_AT: _now(switch), REASON: decision.reason})
    if decision.step is not transition.Step.BEGIN:
        return switch.database
    try:
        switch = _to_wal(switch, bring)
    except TrickleError as error:
        # Triggers have counted all the time; whatever is in the way, the WAL is tried again later.
        transition.disarm(switch.capture(WAL), _tables(switch.replicas()))
        return switch.noted(**{LEAVING: None, REASON: f"the transition failed: {error.message}"}).database
    return tidy(switch)


def watch_slot(switch: Switch) -> None:
    """Tell when the server begins to keep too much for the slot, once for each time that it gets worse."""
    if switch.counts != WAL:
        return
    found = wal_of(switch.database, switch.connection, switch.settings).slot_health()
    before = State(str(switch.database.options.get(LAG, State.OK.value)))
    if found.state is before:
        return
    switch.noted(**{LAG: found.state.value})
    if (before, found.state) in _WORSE:
        severity = Severity.CRITICAL if found.state is State.CRITICAL else Severity.WARNING
        payload = {"database": switch.database.name, "slot": found.what, "detail": found.message, "bytes": found.bytes}
        with switch.warehouse.catalog.write() as tx:
            now = switch.warehouse.clock.now()
            alerts.add(tx, event=Event.SLOT_LAG_WARNING.value, severity=severity, payload=payload, now=now)


def _to_wal(switch: Switch, bring: Bring) -> Switch:
    switch = switch.noted(**{LEAVING: WAL})
    wal = wal_of(switch.database, switch.connection, switch.settings)
    tables = _tables(switch.replicas())
    armed = transition.begin(switch.connection, wal, tables)
    triggers = switch.capture(TRIGGER)
    upto = triggers.position()
    bring(triggers, upto)
    positions = {replica.oid: upto for replica in switch.replicas() if replica.status is ReplicaStatus.ACTIVE}
    if len(positions) != len(tables):
        raise InternalError("a replica stopped to follow its source during a transition")
    return _switched(switch, transition.switched(wal, armed, positions), counts=WAL, leaving=TRIGGER)


def _switched(switch: Switch, positions: dict[int, str], *, counts: str, leaving: str) -> Switch:
    """The moment of the transition: from here on the other capture counts."""
    now = switch.warehouse.clock.now()
    with switch.warehouse.catalog.write() as tx:
        if switch.fence is not None:
            switch.fence(tx)
        known = databases.get(tx, switch.database.name)
        for replica in sorted(databases.replicas(tx, known.id), key=lambda one: one.relation.id):
            pin = pins.lock(tx, replica.relation.id)
            position = positions[replica.oid]
            pins.move(tx, pin.relation_id, version=pin.version, number=pin.number, position=position, now=now)
        options = {**known.options, CAPTURE: counts, LEAVING: leaving}
        databases.update(tx, known.id, options=options)
        payload = {"database": known.name, "from": leaving, "to": counts}
        alerts.add(tx, event=Event.CDC_TRANSITION.value, payload=payload, now=now)
        return replace(switch, database=databases.get(tx, known.name))


def _obstacles(switch: Switch, tables: Sequence[SourceTable]) -> tuple[str, ...]:
    return transition.obstacles(wal_of(switch.database, switch.connection, switch.settings), tables)


def _tables(replicas: Sequence[Replica]) -> list[SourceTable]:
    return [shape.from_json(one.oid, one.schema, one.table, one.shape) for one in replicas]


def _is_due(switch: Switch, last: str) -> bool:
    looked = switch.database.options.get(last)
    return looked is None or switch.warehouse.clock.now() >= datetime.fromisoformat(str(looked)) + PATIENCE


def _now(switch: Switch) -> str:
    return switch.warehouse.clock.now().isoformat()
