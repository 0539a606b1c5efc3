"""Publishing a stream table, and withdrawing that."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from psycopg import sql
from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import databases, hosted, publications, streams
from trickle.catalog.outside import Publication
from trickle.catalog.records import StreamTable
from trickle.errors import (
    DuplicateName,
    InvalidName,
    InvalidOption,
    SourceRefused,
    SourceUnreachable,
    TrickleError,
    UnknownColumn,
    UserError,
)
from trickle.postgres.connect import Connection, check_dsn, check_writable, connected, shown
from trickle.postgres.tables import SourceTable
from trickle.publish import rows
from trickle.publish.bring import State, bring, index_name, notify, state_of
from trickle.publish.positions import Book, settle, take_turn
from trickle.publish.shape import check_rights, compare, create_target, find_target
from trickle.publish.steps import Step, reached
from trickle.publish.target import Applied, Target
from trickle.publish.types import LONGEST
from trickle.replicas.attach import split_name
from trickle.settings import Settings
from trickle.tables.hosted import shown_home
from trickle.warehouse import Warehouse

DEFAULT_SCHEMA = "public"


def publish(
    warehouse: Warehouse,
    name: TableName,
    dsn: str,
    *,
    table: str | None = None,
    key: Sequence[str] = (),
    replace: bool = False,
) -> Publication:
    """Keep a stream table as a table of a PostgreSQL database too: copied now, changed after every refresh.

    A table that is there must have the same columns, and no rows unless ``replace``. ``key`` becomes the primary key of
    one that is made. Where the stream table is published there already, it is brought to the present, and with
    ``replace`` all rows are compared.
    """
    place = shown(check_dsn(dsn))
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
        settings = warehouse.settings(tx)
        mine = publications.listing(tx, [stream.relation.id])
        _refuse_unfilled(tx, stream)
    given, plain = split_name(table) if table else (None, stream.relation.name.table)
    schema = given or DEFAULT_SCHEMA
    if max(len(part.encode()) for part in (schema, plain)) > LONGEST:
        raise InvalidName(
            f"the name of the table is too long: {plain[:20]}...",
            detail=f"PostgreSQL keeps {LONGEST} bytes of a name",
            hint="give a shorter one: table => 'public.name'",
        )
    known = next((p for p in mine if (shown(p.dsn), p.schema, p.table) == (place, schema, plain)), None)
    if known is None:
        with warehouse.catalog.write() as tx:
            # Whoever moves it asks for its publications in the same manner: one of the two comes first.
            _refuse_unfilled(tx, streams.lock(tx, stream.relation.id))
            known = publications.add(
                tx,
                stream.relation.id,
                uid=uuid.uuid4().hex,
                dsn=dsn,
                schema=schema,
                table=plain,
                now=warehouse.clock.now(),
            )
        is_new = True
    else:
        known = dataclasses.replace(known, dsn=dsn)
        is_new = False
    try:
        _published(warehouse, known, settings, tuple(key), replace=replace)
    except BaseException:
        if is_new:
            _take_back(warehouse, known, settings)
        raise
    with warehouse.catalog.write() as tx:
        # Not before it has worked: the address that is known may be the better one.
        publications.update(tx, known.id, dsn=dsn)
        return publications.get(tx, known.id)


def _refuse_unfilled(tx: Session, stream: StreamTable) -> None:
    name = stream.relation.name
    home = hosted.of(tx, [stream.relation.id]).get(stream.relation.id)
    if home is not None:
        raise UserError(
            f"stream table {name} lives in PostgreSQL and is not published",
            detail=f"it is at {shown_home(databases.by_id(tx, home.database_id), home)}",
            hint="read it there, or move it to the lake: "
            f"ALTER STREAM TABLE {name} SET (refresh_mode = 'DIFFERENTIAL')",
        )
    if stream.version is None:
        raise UserError(f"stream table {name} has not been filled yet", hint=f"REFRESH STREAM TABLE {name}")


def _published(
    warehouse: Warehouse, publication: Publication, settings: Settings, key: tuple[str, ...], *, replace: bool
) -> None:
    with connected(publication.dsn) as connection:
        check_writable(connection, shown(publication.dsn))
        is_known = Book(connection, settings.publish_schema).find(publication.uid) is not None
        if not is_known:
            _First(warehouse, publication, settings, connection, key, replace).run()
    bring(warehouse, publication, anew="it was asked for" if is_known and replace else None)


def _take_back(warehouse: Warehouse, publication: Publication, settings: Settings) -> None:
    """Forget a publication whose first copy failed, unless it is there after all."""
    with suppress(TrickleError), connected(publication.dsn) as connection:
        if Book(connection, settings.publish_schema).find(publication.uid) is not None:
            return
    with suppress(TrickleError), warehouse.catalog.write() as tx:
        publications.remove(tx, publication.id)


@dataclass(frozen=True)
class _First:
    """The first copy: table, rows, index and position in one transaction."""

    warehouse: Warehouse
    publication: Publication
    settings: Settings
    connection: Connection
    key: tuple[str, ...]
    replace: bool

    def run(self) -> None:
        now = state_of(self.warehouse, self.publication)
        assert now is not None
        self._check_key(now)
        book = Book(self.connection, self.settings.publish_schema)
        with rows.whole(self.warehouse, self.publication.relation, now.version, now.columns) as batches:
            reached(Step.READ)
            with self.connection.transaction():
                settle(self.connection)
                take_turn(self.connection, book.schema)
                take_turn(self.connection, self.publication.uid)
                book.make()
                target = Target(self.connection, self._table(book, now), now.columns)
                if target.is_empty():
                    applied = target.copy_first(batches)
                    reached(Step.COPIED)
                else:
                    target.take(batches, against_all=True)
                    reached(Step.COPIED)
                    applied = target.apply()
                target.index(index_name(self.publication))
                self._finish(book, target, now, applied)
            reached(Step.COMMITTED)
        # Without statistics of the hash the index is not used.
        self.connection.execute(sql.SQL("ANALYZE {}").format(target.table.quoted))

    def _finish(self, book: Book, target: Target, now: State, applied: Applied) -> None:
        reached(Step.APPLIED)
        book.enter(self.publication, target.table.oid, self.warehouse.catalog.meta().warehouse_id)
        book.move(self.publication, now.version, now.data_timestamp, [column.name for column in now.columns])
        notify(self.connection, self.settings.publish_channel, self.publication, now, applied)
        reached(Step.POSITIONED)

    def _check_key(self, now: State) -> None:
        names = [column.name for column in now.columns]
        for column in self.key:
            if column not in names:
                raise UnknownColumn(f"the key names no column: {column!r}", hint="columns: " + ", ".join(names))

    def _table(self, book: Book, now: State) -> SourceTable:
        """The table to publish to: made, or found to be fit and free."""
        schema, name = self.publication.schema, self.publication.table
        found = find_target(self.connection, schema, name)
        if found is None:
            return create_target(self.connection, schema, name, now.columns, self.key)
        may_replace = self._release(book, found) or self.replace
        differs = compare(found, now.columns, ())
        if differs:
            raise InvalidOption(
                f"{found.shown} is there and has other columns",
                detail=differs.words,
                hint="drop it or choose another name; it is made with the right columns",
            )
        if self.key and set(self.key) != set(found.key):
            raise InvalidOption(
                f"{found.shown} is there and has another key",
                detail="its key: " + (", ".join(found.key) or "none"),
                hint="leave the key out: that of the table is used",
            )
        check_rights(self.connection, found)
        if not may_replace and not Target(self.connection, found, now.columns).is_empty():
            raise InvalidOption(
                f"{found.shown} is there and holds rows",
                hint="with replace => true they give way to those of the stream table",
            )
        return found

    def _release(self, book: Book, found: SourceTable) -> bool:
        """Whether the table was published by a process that died before its catalog knew of it; refuses others'."""
        holder = book.holder(found.oid)
        if holder is None:
            return False
        with self.warehouse.catalog.read() as tx:
            alive = {one.uid for one in publications.listing(tx)}
        ours = holder.warehouse == self.warehouse.catalog.meta().warehouse_id and holder.publication not in alive
        if not (ours or self.replace) or holder.publication in alive:
            raise DuplicateName(
                f"another stream table is published to {found.shown}",
                hint="unpublish that one, or choose another name; replace => true takes over from another warehouse",
            )
        book.remove(holder.publication)
        self.connection.execute(
            sql.SQL("DROP INDEX IF EXISTS {}").format(
                sql.Identifier(found.schema, f"trickle_rows_{holder.publication[:16]}")
            )
        )
        return ours


def unpublish(
    warehouse: Warehouse, name: TableName, *, table: str | None = None, drop: bool = False, force: bool = False
) -> list[Publication]:
    """Keep a stream table in PostgreSQL no longer, everywhere or in one ``table``. The table stays, unless ``drop``.

    ``force`` goes on when the server does not answer, or lets us in no more.
    """
    with warehouse.catalog.read() as tx:
        found = publications.listing(tx, [streams.get(tx, name).relation.id])
        settings = warehouse.settings(tx)
    if table is not None:
        schema, plain = split_name(table)
        found = [one for one in found if one.table == plain and one.schema == (schema or DEFAULT_SCHEMA)]
    if not found:
        raise InvalidOption(f"{name} is not published" + (f" to {table}" if table else ""))
    for publication in found:
        try:
            _withdraw(publication, settings, drop=drop)
        except (SourceUnreachable, SourceRefused):
            if not force:
                raise
        with warehouse.catalog.write() as tx:
            publications.remove(tx, publication.id)
    return found


def _withdraw(publication: Publication, settings: Settings, *, drop: bool) -> None:
    with connected(publication.dsn) as connection, connection.transaction():
        settle(connection)
        book = Book(connection, settings.publish_schema)
        take_turn(connection, publication.uid)
        known = book.find(publication.uid)
        book.remove(publication.uid)
        if known is None or known.schema is None or known.table is None:
            return
        if drop:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(known.schema, known.table)))
        else:
            index = sql.Identifier(known.schema, index_name(publication))
            connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(index))
