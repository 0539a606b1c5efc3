"""How far publications are, as the database that holds them says.

The position is written in the transaction that writes the rows, so that both are there or neither: a process that dies
at any moment leaves a table that says itself which version it shows. The catalog only remembers what it last saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from trickle.catalog.outside import Publication
from trickle.errors import ConcurrentModification
from trickle.postgres.connect import SPELLING, Connection

WAIT = "60s"
"""How long another process or a lock of the user's is waited for."""
_SPACE = int.from_bytes(b"tpub") & 0x7FFFFFFF

_TABLE = """
CREATE TABLE {} (
    publication text PRIMARY KEY,
    target regclass NOT NULL UNIQUE,
    warehouse text NOT NULL,
    stream_table text NOT NULL,
    uid text NOT NULL,
    version bigint NOT NULL,
    data_timestamp timestamptz,
    columns text[] NOT NULL,
    published_at timestamptz NOT NULL
)"""


@dataclass(frozen=True)
class Position:
    """Where a publication stands."""

    publication: str
    oid: int
    schema: str | None
    """Of the table, as it is called now; None when it was dropped."""
    table: str | None
    warehouse: str
    uid: str
    """The incarnation of the stream table."""
    version: int
    columns: Sequence[str]
    """The columns that were published."""


@dataclass(frozen=True)
class Book:
    """The positions in one database."""

    connection: Connection
    schema: str

    @property
    def _positions(self) -> sql.Identifier:
        return sql.Identifier(self.schema, "positions")

    def is_there(self) -> bool:
        """Whether anything was ever published here."""
        found = self.connection.execute(
            "SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relname = 'positions'",
            (self.schema,),
        )
        return found.fetchone() is not None

    def make(self) -> None:
        """Make the schema and the table where they are missing; the lock on the book is held."""
        if self.is_there():
            return
        there = self.connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s", (self.schema,))
        # With IF NOT EXISTS the right to create a schema is asked for even when it is there.
        if there.fetchone() is None:
            self.connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
        self.connection.execute(sql.SQL(_TABLE).format(self._positions))

    def find(self, publication: str) -> Position | None:
        """The position of a publication."""
        return self._one(sql.SQL("p.publication = {}").format(sql.Literal(publication)))

    def holder(self, oid: int) -> Position | None:
        """The publication that a table belongs to."""
        return self._one(sql.SQL("p.target::oid = {}::oid").format(sql.Literal(oid)))

    def _one(self, condition: sql.Composable) -> Position | None:
        if not self.is_there():
            return None
        query = sql.SQL(
            "SELECT p.publication, p.target::oid::bigint, n.nspname, c.relname, p.warehouse, p.uid, p.version,"
            " p.columns FROM {} p LEFT JOIN pg_catalog.pg_class c ON c.oid = p.target::oid"
            " LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {}"
        )
        row = self.connection.execute(query.format(self._positions, condition)).fetchone()
        return None if row is None else Position(*row)

    def enter(self, publication: Publication, oid: int, warehouse: str) -> None:
        """Enter a table that is being made a publication; ``move`` follows in the same transaction."""
        self.connection.execute(
            sql.SQL(
                "INSERT INTO {} (publication, target, warehouse, stream_table, uid, version, columns, published_at)"
                " VALUES (%s, %s::oid::regclass, %s, %s, %s, -1, '{{}}', now())"
            ).format(self._positions),
            (publication.uid, oid, warehouse, str(publication.relation.name), publication.relation.uid),
        )

    def move(
        self, publication: Publication, version: int, data_timestamp: datetime | None, columns: Sequence[str]
    ) -> None:
        """Say that the table shows a version."""
        self.connection.execute(
            sql.SQL(
                "UPDATE {} SET version = %s, uid = %s, stream_table = %s, data_timestamp = %s, columns = %s,"
                " published_at = now() WHERE publication = %s"
            ).format(self._positions),
            (
                version,
                publication.relation.uid,
                str(publication.relation.name),
                data_timestamp,
                list(columns),
                publication.uid,
            ),
        )

    def remove(self, publication: str) -> None:
        """Forget a publication."""
        if self.is_there():
            self.connection.execute(
                sql.SQL("DELETE FROM {} WHERE publication = %s").format(self._positions), (publication,)
            )


def settle(connection: Connection) -> None:
    """Prepare a transaction: texts are spelled as Trickle reads them, and triggers of the user's find what they name.

    All of it ends with the transaction, so that it works through a pooler that hands out sessions for one.
    """
    plain = {name: value for name, value in SPELLING.items() if name not in ("search_path", "row_security")}
    plain["lock_timeout"] = WAIT
    settings = [
        sql.SQL("set_config({}, {}, true)").format(sql.Literal(name), sql.Literal(value))
        for name, value in plain.items()
    ]
    connection.execute(sql.SQL("SELECT ") + sql.SQL(", ").join(settings))
    connection.execute("SET LOCAL search_path TO DEFAULT")
    connection.execute("SET LOCAL row_security TO DEFAULT")


def take_turn(connection: Connection, what: str) -> None:
    """Be the only one who works on a publication, or on the book, until the transaction ends."""
    try:
        connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s, pg_catalog.hashtext(%s))", (_SPACE, what))
    except psycopg.errors.LockNotAvailable:
        raise ConcurrentModification("another process publishes the same table", hint="try again in a moment") from None
