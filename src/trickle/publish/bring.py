"""Bringing a publication to what readers of its stream table see.

What changed between the published version and the present one is read first, outside of any transaction there. Then one
transaction takes its turn (a lock that the database keeps), sees that the position is still the one that the change
was read for, applies the change, moves the position and notifies. So a change is applied exactly once, by whichever
process comes first, and a process that dies leaves the table and its position as they were, or as they should be.

Where the change cannot be told any more (history was vacuumed, the columns changed, somebody else wrote into the
table), all rows are read, and the difference is applied in the same manner.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from trickle.catalog import alerts, publications, streams
from trickle.catalog.outside import Publication
from trickle.catalog.records import Event, StreamTable
from trickle.errors import (
    ConcurrentModification,
    HistoryLost,
    NegativeMultiplicity,
    SchemaDrift,
    SourceRefused,
    UnknownTable,
)
from trickle.lake.snapshot import open_snapshot
from trickle.postgres.connect import Connection, check_writable, connected, shown
from trickle.postgres.tables import SourceTable, describe_oids
from trickle.publish import rows
from trickle.publish.positions import Book, Position, settle, take_turn
from trickle.publish.shape import alter, check_rights, compare
from trickle.publish.steps import Step, reached
from trickle.publish.target import Applied, Target
from trickle.publish.types import Column, columns_of
from trickle.settings import Settings
from trickle.warehouse import Warehouse

ATTEMPTS = 3
"""Tries when other processes publish the same."""


@dataclass(frozen=True)
class Published:
    """What was done to a published table."""

    name: str
    table: str
    version: int
    rows_inserted: int
    rows_deleted: int
    reloaded: str | None = None
    """Why all rows were compared, where they were."""


@dataclass(frozen=True)
class State:
    """A stream table as readers see it, and the columns that are published of it."""

    stream: StreamTable
    version: int
    columns: tuple[Column, ...]

    @property
    def data_timestamp(self) -> datetime | None:
        return self.stream.data_timestamp


def state_of(warehouse: Warehouse, publication: Publication) -> State | None:
    """The stream table now; None while it has no contents."""
    with warehouse.catalog.read() as tx:
        stream = streams.by_id(tx, publication.relation.id)
    if stream.version is None:
        return None
    snapshot = open_snapshot(warehouse.location_of(stream.relation), stream.version)
    return State(stream, stream.version, tuple(columns_of(snapshot.schema, str(stream.relation.name))))


def bring(warehouse: Warehouse, publication: Publication, *, anew: str | None = None) -> Published | None:
    """Bring a publication to the present; None when it was there. ``anew`` says why all rows are to be compared."""
    with warehouse.catalog.read() as tx:
        settings = warehouse.settings(tx)
    with connected(publication.dsn) as connection:
        check_writable(connection, shown(publication.dsn))
        for attempt in range(ATTEMPTS):
            try:
                return _brought(warehouse, publication, settings, connection, anew)
            except ConcurrentModification:
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("unreachable")


def _brought(
    warehouse: Warehouse, publication: Publication, settings: Settings, connection: Connection, anew: str | None
) -> Published | None:
    book = Book(connection, settings.publish_schema)
    known = _position(book, publication)
    # The stream table is looked at after the position: so it is not the older one of the two.
    now = state_of(warehouse, publication)
    if now is None:
        return None
    # As it is now: it may have moved since the publication was looked up.
    publication = replace(publication, relation=now.stream.relation)
    work = _Work(warehouse, publication, settings, book, known, now)
    if known.version == now.version and known.uid == publication.relation.uid and anew is None:
        work.note()
        return None
    if known.uid != publication.relation.uid or known.version > now.version:
        anew = anew or "the stream table is another one"
    if anew is None:
        try:
            return work.by_changes()
        except (HistoryLost, SchemaDrift, NegativeMultiplicity) as lost:
            anew = f"{lost.message}: {lost.detail}" if lost.detail else lost.message
            _tell(warehouse, publication, anew)
    return work.anew(anew)


def _position(book: Book, publication: Publication) -> Position:
    known = book.find(publication.uid)
    hint = "publish it again, with replace => true where rows are there, or unpublish it with force => true"
    if known is None:
        raise SourceRefused(
            f"the database no longer knows the publication of {publication.relation.name}",
            detail=f"its position in {book.schema}.positions is gone",
            hint=hint,
        )
    if known.table is None:
        raise UnknownTable(
            f"the table that {publication.relation.name} was published to was dropped",
            detail=f"it was {publication.schema}.{publication.table}",
            hint="unpublish it, and publish it again where it is wanted",
        )
    return known


def _tell(warehouse: Warehouse, publication: Publication, why: str) -> None:
    with warehouse.catalog.write() as tx:
        alerts.add(
            tx,
            event=Event.REINITIALIZE_NEEDED.value,
            relation_id=publication.relation.id,
            payload={
                "publication": f"{publication.schema}.{publication.table}",
                "stream_table": str(publication.relation.name),
                "detail": why,
            },
            now=warehouse.clock.now(),
        )


@dataclass(frozen=True)
class _Work:
    """One try."""

    warehouse: Warehouse
    publication: Publication
    settings: Settings
    book: Book
    known: Position
    now: State

    def by_changes(self) -> Published:
        relation = self.publication.relation
        with rows.changed(self.warehouse, relation, self.known.version, self.now.version, self.now.columns) as batches:
            reached(Step.READ)
            with self.book.connection.transaction():
                table = self._turn()
                differs = compare(table, self.now.columns, self.known.columns)
                if differs:
                    raise SchemaDrift("the columns of the published table are others", detail=differs.words)
                target = Target(self.book.connection, table, self.now.columns)
                target.take(batches)
                reached(Step.COPIED)
                applied = target.apply()
                self._finish(applied)
        return self._done(applied, None)

    def anew(self, why: str) -> Published:
        with rows.whole(self.warehouse, self.publication.relation, self.now.version, self.now.columns) as batches:
            reached(Step.READ)
            with self.book.connection.transaction():
                table = self._turn()
                differs = compare(table, self.now.columns, self.known.columns)
                if differs:
                    table = alter(self.book.connection, table, differs)
                target = Target(self.book.connection, table, self.now.columns)
                target.take(batches, against_all=True)
                reached(Step.COPIED)
                applied = target.apply()
                if differs:
                    target.index(index_name(self.publication))
                self._finish(applied)
        return self._done(applied, why)

    def _turn(self) -> SourceTable:
        """Take the turn; the table as it is now. ConcurrentModification when another process came first."""
        connection = self.book.connection
        settle(connection)
        take_turn(connection, self.publication.uid)
        found = self.book.find(self.publication.uid)
        if found is None or (found.version, found.uid) != (self.known.version, self.known.uid):
            raise ConcurrentModification("another process has published meanwhile", hint="try again")
        table = describe_oids(connection, [found.oid]).get(found.oid)
        if table is None:
            raise ConcurrentModification("the published table was dropped meanwhile", hint="try again")
        check_rights(connection, table)
        return table

    def _finish(self, applied: Applied) -> None:
        reached(Step.APPLIED)
        self.book.move(
            self.publication, self.now.version, self.now.data_timestamp, [column.name for column in self.now.columns]
        )
        notify(self.book.connection, self.settings.publish_channel, self.publication, self.now, applied)
        reached(Step.POSITIONED)

    def _done(self, applied: Applied, why: str | None) -> Published:
        reached(Step.COMMITTED)
        self.note()
        name = f"{self.known.schema}.{self.known.table}"
        return Published(
            str(self.publication.relation.name), name, self.now.version, applied.inserted, applied.deleted, why
        )

    def note(self) -> None:
        """Have the catalog know where the publication stands, and what its table is called."""
        assert self.known.schema is not None
        assert self.known.table is not None
        with self.warehouse.catalog.write() as tx:
            publications.update(
                tx,
                self.publication.id,
                version=self.now.version,
                shown_uid=self.publication.relation.uid,
                published_at=self.warehouse.clock.now(),
                schema_name=self.known.schema,
                table_name=self.known.table,
                last_error=None,
                last_error_at=None,
            )
        reached(Step.NOTED)


def notify(connection: Connection, channel: str, publication: Publication, now: State, applied: Applied) -> None:
    """Tell who listens, when the transaction commits."""
    payload = {
        "name": str(publication.relation.name),
        "version": now.version,
        "inserted": applied.inserted,
        "deleted": applied.deleted,
        "data_timestamp": None if now.data_timestamp is None else now.data_timestamp.isoformat(),
    }
    connection.execute("SELECT pg_catalog.pg_notify(%s, %s)", (channel, json.dumps(payload)))


def index_name(publication: Publication) -> str:
    """The index by which rows are found."""
    return f"trickle_rows_{publication.uid[:16]}"
