"""Stream tables that live in PostgreSQL: made there, moved there and back, removed.

The catalog is what counts. Before a table is made in PostgreSQL the catalog notes it; the note belongs to nobody until
the stream table is said, in one transaction of the catalog, to live there. From the same moment on readers find it
there. The way back is the same: the lake's table is filled while readers still read PostgreSQL's, and one transaction
decides. What a process that died has left (notes of nobody, tables that were left) is removed by whoever comes next
(``settle``). So readers see the old contents or the new ones, and nothing is in between.

One process works on the stream tables of a database at a time, and one moves a stream table to the lake: PostgreSQL
keeps the locks. Whatever a process has looked at before it decides is looked at again in the transaction of the catalog
that decides, and each such transaction takes the next number of the stream table.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import psycopg
from sqlalchemy.orm import Session

from trickle.algebra.names import DEFAULT_SCHEMA, TableName
from trickle.apply.unit import recover
from trickle.catalog import databases, history, hosted, intents, publications, relations, streams
from trickle.catalog.outside import Database, Hosted
from trickle.catalog.records import Action, Initiator, Kind, Outcome, RefreshMode, Relation, Status, StreamTable
from trickle.errors import ConcurrentModification, DependentsExist, InvalidName, TrickleError
from trickle.history.failures import close_abandoned
from trickle.immediate.postgres import registry
from trickle.immediate.postgres.install import Installed, drop, install, refuse_taken
from trickle.immediate.postgres.sources import Home, orders_by_bytes, postgres_types
from trickle.immediate.postgres.steps import Step, reached
from trickle.immediate.postgres.translating import to_postgres
from trickle.lake.create import create as create_table
from trickle.lake.create import drop as drop_table
from trickle.postgres.connect import Connection, connected, shown
from trickle.postgres.names import identifier
from trickle.refresh.definition import Analysed, tell
from trickle.refresh.dependencies import dependencies_of
from trickle.refresh.execute import refresh
from trickle.replicas.ingest import ingest
from trickle.sql import Query
from trickle.tables.hosted import shown_home
from trickle.warehouse import Warehouse

_logger = logging.getLogger(__name__)
_LONGEST = 63
"""Bytes of a name in PostgreSQL."""
_SPACE = int.from_bytes(b"trih") & 0x7FFFFFFF
_MOVES = int.from_bytes(b"trim") & 0x7FFFFFFF
_WAIT_MS = 60_000


@dataclass(frozen=True)
class Wanted:
    """A stream table as it is to be in PostgreSQL."""

    name: TableName
    query: Query
    analysed: Analysed
    home: Home
    schedule: str
    options: Mapping[str, object]

    @property
    def place(self) -> tuple[str, str]:
        """Schema and name there: ``public`` for the schema ``default`` and for that of the replicas."""
        own = (DEFAULT_SCHEMA, self.home.database.name.lower())
        return ("public" if self.name.schema_key in own else self.name.schema, self.name.table)

    @property
    def text(self) -> str:
        return self.analysed.canonical or self.query.text


def make(warehouse: Warehouse, wanted: Wanted) -> None:
    """A new stream table."""
    with _working(warehouse, wanted.home.database) as connection, _installed(warehouse, connection, wanted) as made:
        now = warehouse.clock.now()
        with warehouse.catalog.write() as tx:
            comment = wanted.options.get("description")
            relation = relations.add(
                tx,
                name=wanted.name,
                kind=Kind.STREAM_TABLE,
                uid=uuid.uuid4().hex,
                query=wanted.query.text,
                comment=comment if isinstance(comment, str) else None,
                now=now,
            )
            streams.add(
                tx,
                relation.id,
                query=wanted.query.text,
                schedule=wanted.schedule,
                refresh_mode=RefreshMode.IMMEDIATE,
                options=wanted.options,
                always_refresh=False,
                now=now,
                canonical=wanted.analysed.canonical,
            )
            _settle_in(warehouse, tx, relation, wanted, made)
    reached(Step.LINKED)


def move_in(warehouse: Warehouse, stream: StreamTable, wanted: Wanted) -> None:
    """A stream table of the lake moves to PostgreSQL."""
    with warehouse.catalog.read() as tx:
        _refuse_published(tx, stream.relation)
    recover(warehouse, [stream.relation.id])
    close_abandoned(warehouse, [stream.relation.id])
    old = warehouse.location_of(stream.relation)
    with _working(warehouse, wanted.home.database) as connection, _installed(warehouse, connection, wanted) as made:
        now = warehouse.clock.now()
        with warehouse.catalog.write() as tx:
            stored = streams.lock(tx, stream.relation.id)
            _refuse_readers(tx, stream.relation)
            _refuse_published(tx, stream.relation)
            if stored.relation.uid != stream.relation.uid or intents.pending(tx, [stream.relation.id]):
                raise ConcurrentModification(f"{stream.relation.name} is being refreshed", hint="try again in a moment")
            relations.update(tx, stream.relation.id, now=now, location=None, uid=uuid.uuid4().hex)
            streams.set_frontier(tx, stream.relation.id, {})
            # A refresh that began before this must not commit after it: its number is taken.
            streams.update(tx, stream.relation.id, now=now, refresh_number=stored.refresh_number + 1, state={})
            _define(tx, stream.relation.id, wanted, now)
            _settle_in(warehouse, tx, stream.relation, wanted, made)
    reached(Step.LINKED)
    drop_table(old)


@dataclass(frozen=True)
class Leaving:
    """A stream table as it is to be in the lake."""

    query: Query
    analysed: Analysed
    mode: RefreshMode
    schedule: str
    options: Mapping[str, object]


def move_out(warehouse: Warehouse, stream: StreamTable, home: Hosted, wanted: Leaving) -> None:
    """A stream table of PostgreSQL moves to the lake, and is refreshed from there on."""
    with warehouse.catalog.read() as tx:
        database = databases.by_id(tx, home.database_id)
        _refuse_readers(tx, stream.relation)
    with _moving(database, stream.relation, home):
        _fill_in_lake(warehouse, stream, home, wanted, database)
        reached(Step.FILLED)
        with warehouse.catalog.write() as tx:
            hosted.unlink(tx, stream.relation.id)
        reached(Step.UNLINKED)
    settle(warehouse, [database])


def _fill_in_lake(warehouse: Warehouse, stream: StreamTable, home: Hosted, wanted: Leaving, database: Database) -> None:
    relation, uid = stream.relation, uuid.uuid4().hex
    location = warehouse.place_for(relation.name)
    create_table(location, wanted.analysed.schema, comment=relation.comment)
    try:
        with warehouse.catalog.write() as tx:
            _place(warehouse, tx, stream, home, wanted, location=warehouse.relative(location), uid=uid)
        reached(Step.PLACED)
        # Not older than what readers have seen.
        ingest(warehouse, [database.name])
        refresh(warehouse, [relation.name], initiated_by=Initiator.INITIAL)
    except BaseException as error:
        # An intent that stands decides: it is carried out, or given up.
        with suppress(TrickleError):
            recover(warehouse, [relation.id])
        if not _is_filled(warehouse, stream, uid):
            _stay(warehouse, stream, uid)
            drop_table(location)
            raise
        if not isinstance(error, Exception):
            raise


def _place(
    warehouse: Warehouse,
    tx: Session,
    stream: StreamTable,
    home: Hosted,
    wanted: Leaving,
    *,
    location: str,
    uid: str,
) -> None:
    """The stream table has a place in the lake, which is to be filled. Readers still find it in PostgreSQL."""
    now = warehouse.clock.now()
    number = _refuse_changed(tx, stream, home) + 1
    relations.update(tx, stream.relation.id, now=now, location=location, uid=uid)
    streams.update(
        tx,
        stream.relation.id,
        now=now,
        query=wanted.query.text,
        refresh_mode=wanted.mode,
        schedule=wanted.schedule,
        options=wanted.options,
        canonical=wanted.analysed.canonical,
        always_refresh=wanted.query.is_unsteady,
        populated=False,
        status=Status.INITIALIZING,
        refresh_number=number,
        state={},
    )
    relations.set_dependencies(tx, stream.relation.id, dependencies_of(wanted.query, wanted.analysed.reading))


def resume(warehouse: Warehouse, stream: StreamTable, home: Hosted) -> None:
    """End a move to the lake that a process left when it died: forward where it is filled, and back elsewhere."""
    with warehouse.catalog.read() as tx:
        database = databases.by_id(tx, home.database_id)
    with _moving(database, stream.relation, home):
        recover(warehouse, [stream.relation.id])
        close_abandoned(warehouse, [stream.relation.id])
        with warehouse.catalog.read() as tx:
            found = streams.by_id(tx, stream.relation.id)
            # A scheduler fills whatever is to be filled. The fill of who moved it is dead with its lock.
            if any(one.initiated_by is not Initiator.INITIAL for one in history.running(tx, stream.relation.id)):
                raise _filling(stream)
        if found.relation.location is None or found.refresh_mode is RefreshMode.IMMEDIATE:
            return
        if not _is_filled(warehouse, found, found.relation.uid):
            _stay(warehouse, found, found.relation.uid)
            drop_table(warehouse.location_of(found.relation))
            return
        with warehouse.catalog.write() as tx:
            hosted.unlink(tx, stream.relation.id)
    settle(warehouse, [database])


@contextmanager
def _moving(database: Database, relation: Relation, home: Hosted) -> Iterator[None]:
    """Be the only one who moves a stream table to the lake. Who dies gives it up, as PostgreSQL keeps the lock.

    It is a lock of its own: a table may take long to be filled, and others are made in the database meanwhile.
    """
    with connected(database.dsn) as connection:
        row = connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_MOVES, home.uid]).fetchone()
        if row is None or not row[0]:
            raise ConcurrentModification(
                f"another process moves {relation.name} to the lake", hint="try again when it is done"
            )
        yield


def redefine(warehouse: Warehouse, stream: StreamTable, home: Hosted, wanted: Wanted) -> None:
    """Another query for a stream table of PostgreSQL, in the same place."""
    if wanted.home.database.id != home.database_id:
        raise DependentsExist(
            f"the new query of {stream.relation.name} reads another database", hint="drop it and make it again"
        )
    with _working(warehouse, wanted.home.database) as connection:
        text = _translated(connection, wanted)
        with warehouse.catalog.read() as tx:
            settings = warehouse.settings(tx)
        try:
            with connection.transaction():
                drop(connection, home.table, schema=home.schema)
                # It may take long: the catalog is written when it is there, and is nobody's meanwhile.
                made = install(connection, home.table, text, schema=home.schema, owner=home.uid, settings=settings)
                with warehouse.catalog.write() as tx:
                    now, number = warehouse.clock.now(), _refuse_changed(tx, stream, home) + 1
                    _define(tx, stream.relation.id, wanted, now)
                    streams.update(tx, stream.relation.id, now=now, refresh_number=number)
                    hosted.redefine(tx, home.id, columns=wanted.analysed.schema.jsonValue(), text=text)
                reached(Step.REDEFINED)
        except BaseException:
            # What the catalog says is what there has to be: the old query, or the new one.
            with suppress(TrickleError, psycopg.Error):
                _tidy(warehouse, wanted.home.database, connection)
            raise
        _tell_of_indexes(wanted, made)


def settle(warehouse: Warehouse, wanted: list[Database]) -> None:
    """Remove from PostgreSQL what no longer lives there; a server that does not answer keeps it for the time being."""
    for database in wanted:
        try:
            tidy_up(warehouse, database)
        except TrickleError as error:
            _logger.warning("event=settle_failed database=%s error=%r", database.name, error.message)


def settle_all(warehouse: Warehouse) -> None:
    """The same for all databases in which something is left to be done."""
    with warehouse.catalog.read() as tx:
        found = [databases.by_id(tx, each) for each in sorted({one.database_id for one in hosted.left(tx)})]
    if found:
        settle(warehouse, found)


def tidy_up(warehouse: Warehouse, database: Database, wait_ms: int = _WAIT_MS) -> None:
    """The same for one database; refuses when others work there for longer than ``wait_ms``."""
    with _working(warehouse, database, wait_ms):
        pass


def abandon(warehouse: Warehouse, name: str) -> None:
    """Forget what is left in a database whose server does not answer: nobody will remove it there."""
    with warehouse.catalog.write() as tx:
        database = databases.find(tx, name)
        for one in hosted.left(tx, database.id) if database is not None else ():
            hosted.remove(tx, one.id)


@contextmanager
def _working(warehouse: Warehouse, database: Database, wait_ms: int = _WAIT_MS) -> Iterator[Connection]:
    """A connection that alone works on the stream tables of a database; what others left is tidied up."""
    with connected(database.dsn) as connection:
        connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{wait_ms}ms"])
        try:
            connection.execute("SELECT pg_advisory_lock(%s, hashtext(current_database()))", [_SPACE])
        except psycopg.errors.LockNotAvailable:
            raise ConcurrentModification(
                f"another process works on the stream tables in {database.name}", hint="try again in a moment"
            ) from None
        _tidy(warehouse, database, connection)
        yield connection


def _tidy(warehouse: Warehouse, database: Database, connection: Connection) -> None:
    with warehouse.catalog.read() as tx:
        known, left = hosted.listing(tx, database.id), hosted.left(tx, database.id)
        settings = warehouse.settings(tx)
    # Those that read others were made later, and go first.
    for one in reversed(left):
        with warehouse.catalog.write() as tx:
            if one.relation_id is not None:
                hosted.unlink(tx, one.relation_id)
        record = registry.owned(connection, one.uid)
        if record is not None:
            drop(connection, record.name, schema=record.schema)
        with warehouse.catalog.write() as tx:
            hosted.remove(tx, one.id)
        reached(Step.REMOVED)
    for one in known:
        record = None if one in left else registry.owned(connection, one.uid)
        if record is not None and record.query != one.text:
            with connection.transaction():
                drop(connection, record.name, schema=record.schema)
                install(connection, one.table, one.text, schema=one.schema, owner=one.uid, settings=settings)


@contextmanager
def _installed(warehouse: Warehouse, connection: Connection, wanted: Wanted) -> Iterator[Hosted]:
    """The table, made in PostgreSQL. When the block fails it goes again."""
    schema, table = wanted.place
    if len(schema.encode()) > _LONGEST or len(table.encode()) > _LONGEST:
        raise InvalidName(f"{wanted.name} is too long a name for PostgreSQL", hint=f"use at most {_LONGEST} bytes")
    # Whoever has the name has it: a note would be about somebody else's table.
    refuse_taken(connection, schema, table)
    text = _translated(connection, wanted)
    with warehouse.catalog.write() as tx:
        made = hosted.add(
            tx,
            wanted.home.database.id,
            schema=schema,
            table=table,
            columns=wanted.analysed.schema.jsonValue(),
            text=text,
            now=warehouse.clock.now(),
        )
        settings = warehouse.settings(tx)
    try:
        reached(Step.NOTED)
        # CREATE SCHEMA IF NOT EXISTS asks for the privilege even when the schema is there.
        if connection.execute("SELECT to_regnamespace(%s)", [identifier(schema)]).fetchone() == (None,):
            connection.execute(f"CREATE SCHEMA {identifier(schema)}")
        found = install(connection, table, text, schema=schema, owner=made.uid, settings=settings)
        reached(Step.INSTALLED)
        yield made
    except BaseException:
        # Should this fail too, the note stays, and somebody else does it.
        with suppress(TrickleError, psycopg.Error):
            if registry.owned(connection, made.uid) is not None:
                drop(connection, table, schema=schema)
            with warehouse.catalog.write() as tx:
                hosted.remove(tx, made.id)
        raise
    _tell_of_indexes(wanted, found)


def _tell_of_indexes(wanted: Wanted, made: Installed) -> None:
    tell(wanted.name, [f"changes would use an index that is not there: {each}" for each in made.missing_indexes])


def _translated(connection: Connection, wanted: Wanted) -> str:
    views = {name: view.text for name, view in wanted.analysed.reading.views.items()}
    return to_postgres(
        wanted.text,
        wanted.home.faces,
        views,
        postgres_types(wanted.analysed.schema),
        by_bytes=orders_by_bytes(connection, wanted.home.faces),
    )


def _define(tx: Session, relation_id: int, wanted: Wanted, now: datetime) -> None:
    streams.update(
        tx,
        relation_id,
        now=now,
        query=wanted.query.text,
        schedule=wanted.schedule,
        refresh_mode=RefreshMode.IMMEDIATE,
        options=wanted.options,
        always_refresh=False,
        canonical=wanted.analysed.canonical,
    )
    relations.set_dependencies(tx, relation_id, dependencies_of(wanted.query, wanted.analysed.reading))


def _settle_in(warehouse: Warehouse, tx: Session, relation: Relation, wanted: Wanted, made: Hosted) -> None:
    """The stream table lives in PostgreSQL: from the end of this transaction on."""
    now = warehouse.clock.now()
    streams.update(
        tx,
        relation.id,
        now=now,
        populated=True,
        version=None,
        status=Status.ACTIVE,
        effective_mode=RefreshMode.IMMEDIATE.value,
        needs_reinitialize=False,
        data_timestamp=now,
        last_refresh_at=now,
        consecutive_errors=0,
        last_error=None,
    )
    relations.set_dependencies(tx, relation.id, dependencies_of(wanted.query, wanted.analysed.reading))
    hosted.link(tx, made.id, relation.id)
    history.record(
        tx,
        relation_id=relation.id,
        name=str(wanted.name),
        action=Action.FULL,
        status=Outcome.COMPLETED,
        initiated_by=Initiator.INITIAL,
        started_at=now,
        ended_at=now,
        reason=f"IMMEDIATE in PostgreSQL, {shown_home(wanted.home.database, made)}",
    )


def _stay(warehouse: Warehouse, stream: StreamTable, uid: str) -> None:
    """As it was before it was to move to the lake as the incarnation ``uid``; nothing is done to another one."""
    with warehouse.catalog.write() as tx:
        now = warehouse.clock.now()
        stored = streams.lock(tx, stream.relation.id)
        if stored.relation.uid != uid:
            return
        if stored.version is not None or intents.pending(tx, [stream.relation.id]):
            raise _filling(stream)
        relations.update(tx, stream.relation.id, now=now, location=None, uid=uuid.uuid4().hex)
        streams.update(
            tx,
            stream.relation.id,
            now=now,
            refresh_mode=RefreshMode.IMMEDIATE,
            schedule=stream.schedule,
            options=stream.options,
            canonical=stream.canonical,
            always_refresh=False,
            populated=True,
            version=None,
            status=Status.ACTIVE,
            consecutive_errors=0,
            last_error=None,
            # A refresh that began in the lake must not commit there any more: its number is taken.
            refresh_number=stored.refresh_number + 1,
        )


def _filling(stream: StreamTable) -> ConcurrentModification:
    return ConcurrentModification(f"{stream.relation.name} is being filled", hint="try again in a moment")


def _refuse_changed(tx: Session, stream: StreamTable, home: Hosted) -> int:
    """ConcurrentModification when a stream table was moved or redefined since it was looked at; its number."""
    stored = streams.lock(tx, stream.relation.id)
    there = hosted.of(tx, [stream.relation.id]).get(stream.relation.id)
    same = stored.refresh_number == stream.refresh_number and stored.refresh_mode is stream.refresh_mode
    if there is None or there.id != home.id or not same:
        raise ConcurrentModification(
            f"{stream.relation.name} was changed by another process meanwhile", hint="try again"
        )
    return stored.refresh_number


def _is_filled(warehouse: Warehouse, stream: StreamTable, uid: str) -> bool:
    with warehouse.catalog.read() as tx:
        found = streams.by_id(tx, stream.relation.id)
        return found.relation.uid == uid and found.version is not None


def _refuse_readers(tx: Session, relation: Relation) -> None:
    readers = [relations.by_id(tx, each.relation_id) for each in relations.dependents(tx, relation.id)]
    for reader in readers:
        if reader.kind is Kind.STREAM_TABLE:
            raise DependentsExist(
                f"cannot move {relation.name}: stream table {reader.name} reads it where it is",
                hint=f"drop {reader.name} first",
            )


def _refuse_published(tx: Session, relation: Relation) -> None:
    """What is published is read from the lake, version by version."""
    for one in publications.listing(tx, [relation.id])[:1]:
        raise DependentsExist(
            f"cannot move {relation.name} to PostgreSQL: it is published",
            detail=f"it is kept as {one.schema}.{one.table} at {shown(one.dsn)}",
            hint=f"CALL trickle.unpublish('{relation.name}') first",
        )
