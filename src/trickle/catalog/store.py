"""Opens the catalog and gives out its transactions.

A write on SQLite begins with BEGIN IMMEDIATE: the deferred transactions that the driver would start lose updates.
On PostgreSQL writers are READ COMMITTED and lock the rows that they are about to change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, select, text
from sqlalchemy.orm import Session

from trickle.catalog import connections, migrate, urls
from trickle.catalog.failures import from_sqlite, translated
from trickle.catalog.models import MetaRow
from trickle.catalog.records import Meta
from trickle.errors import WarehouseMissing


class Catalog:
    """A warehouse's catalog. Threads may share it; each process opens its own."""

    def __init__(self, engine: Engine, url: URL) -> None:
        self._engine = engine
        self._url = url
        self.backend: urls.Backend = urls.backend(url)
        self.url_shown = urls.shown(url)
        sqlite = self.backend == "sqlite"
        read, write, migrating = (
            (connections.SQLITE_READ, connections.SQLITE_WRITE, connections.SQLITE_MIGRATE)
            if sqlite
            else (connections.POSTGRES_READ, connections.POSTGRES_WRITE, connections.POSTGRES_WRITE)
        )
        self._reader = engine.execution_options(**read)
        self._writer = engine.execution_options(**write)
        self._migrator = engine.execution_options(**migrating)

    @staticmethod
    def open(url: str, *, create: bool = True) -> Catalog:
        """Open the catalog at a URL; make it or bring it up to date first."""
        parsed = urls.parse(url)
        sqlite = urls.backend(parsed) == "sqlite"
        if sqlite and not create and not Path(str(parsed.database)).is_file():
            raise _missing(urls.shown(parsed))
        catalog = Catalog(connections.sqlite_engine(parsed) if sqlite else connections.postgres_engine(parsed), parsed)
        try:
            catalog._bring_up_to_date(create)
        except BaseException:
            catalog.close()
            raise
        return catalog

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one consistent state of the catalog and cannot change it."""
        with translated(self.url_shown, writing=False), _session(self._reader) as tx:
            yield tx

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that is committed at the end of the block, or undone when the block raises."""
        with translated(self.url_shown, writing=True), _session(self._writer) as tx, tx.begin():
            connection = tx.connection()
            if self.backend == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{connections.LOCK_SECONDS}s'"))
            yield tx

    def meta(self) -> Meta:
        """Facts about the catalog itself."""
        with self.read() as tx:
            row = tx.execute(select(MetaRow)).scalar_one()
            return Meta(
                warehouse_id=row.warehouse_id,
                format_version=row.format_version,
                created_by=row.created_by,
                created_at=row.created_at,
                migrated_by=row.migrated_by,
                migrated_at=row.migrated_at,
            )

    def close(self) -> None:
        """Give back all connections."""
        self._engine.dispose()

    def _bring_up_to_date(self, create: bool) -> None:
        if self._is_current(create):
            return
        if self.backend == "sqlite":
            self._use_write_ahead_log()
        with translated(self.url_shown, writing=True), self._migrator.begin() as connection:
            migrate.lock(connection)
            revision = migrate.stored_revision(connection)
            # Another process may have been here while this one waited.
            migrate.check_known(connection, revision, self.url_shown)
            if revision != migrate.HEAD:
                migrate.upgrade(connection)
        # The migrating connection does not check foreign keys and must not be used again.
        self._engine.dispose()

    def _is_current(self, create: bool) -> bool:
        with translated(self.url_shown, writing=False), self._reader.connect() as connection:
            revision = migrate.stored_revision(connection)
            if revision == migrate.HEAD:
                return True
            migrate.check_known(connection, revision, self.url_shown)
            if revision is None and not create:
                raise _missing(self.url_shown)
            return False

    def _use_write_ahead_log(self) -> None:
        try:
            connections.use_write_ahead_log(str(self._url.database))
        except sqlite3.Error as error:
            raise from_sqlite(error, self.url_shown, writing=True) from error


def _session(engine: Engine) -> Session:
    # Rows are changed by statement, so what is read again must come from the database and not from memory.
    fresh: dict[str, Any] = {"populate_existing": True, "synchronize_session": False}
    return Session(engine, autoflush=False, expire_on_commit=False, execution_options=fresh)


def _missing(shown: str) -> WarehouseMissing:
    return WarehouseMissing(f"there is no catalog at {shown}", hint="make one with: trickle init")
