"""Brings a catalog to the schema of this code. Alembic is imported only when there is something to do."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import Connection, text, update

from trickle.catalog.models import MetaRow
from trickle.catalog.upsert import insert_into
from trickle.errors import CatalogUnreachable, InternalError, NewerWarehouse

# Revisions that this code knows, oldest first; a test holds them equal to the files in migrations/versions.
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
HEAD = REVISIONS[-1]
FORMAT_VERSION = 6
VERSION_TABLE = "alembic_version"
POSTGRES_SCHEMA = "trickle"

# "trickle" in ASCII, cut to a signed 64-bit number.
_ADVISORY_LOCK = int.from_bytes(b"trickle") & 0x7FFFFFFFFFFFFFFF
# Alembic's environment is global to the process.
_one_migration = threading.Lock()


def code_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("trickle-spark")
    except PackageNotFoundError:
        return "unknown"


def stored_revision(connection: Connection) -> str | None:
    """The revision of the catalog, or None where there is none yet."""
    if VERSION_TABLE not in _tables(connection):
        return None
    revision: str | None = connection.execute(
        text(f"SELECT version_num FROM {_prefix(connection)}{VERSION_TABLE}")
    ).scalar()
    return revision


def _prefix(connection: Connection) -> str:
    return "" if connection.dialect.name == "sqlite" else f"{POSTGRES_SCHEMA}."


def _tables(connection: Connection) -> set[str]:
    # Not to_regclass and its kin: a backend that saw no schema answers from memory until it next locks a relation,
    # so one that waited for another's migration would not see it.
    listed = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if connection.dialect.name == "sqlite"
        else f"SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = '{POSTGRES_SCHEMA}'"
    )
    return set(connection.execute(text(listed)).scalars())


def check_known(connection: Connection, revision: str | None, shown: str) -> None:
    """Refuse a catalog of a newer Trickle, and a database that belongs to something else."""
    if revision in REVISIONS:
        return
    tables = _tables(connection) - {VERSION_TABLE}
    if revision is None and not tables:
        return
    if revision is None or "meta" not in tables:
        raise CatalogUnreachable(
            f"{shown} holds something else than a Trickle catalog",
            detail="its tables: " + ", ".join(sorted(tables)[:5]),
            hint="give the catalog a database of its own",
        )
    writer = connection.execute(text(f"SELECT migrated_by FROM {_prefix(connection)}meta")).scalar()
    raise NewerWarehouse(
        "the warehouse was written by a newer version of Trickle",
        detail=f"its catalog has revision {revision}, written by trickle {writer}; this is trickle {code_version()}",
        hint="upgrade with: pip install --upgrade trickle-spark",
    )


def lock(connection: Connection) -> None:
    """Let one process migrate at a time. On SQLite the write transaction itself is the lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})


def upgrade(connection: Connection) -> None:
    """Run the migrations inside the connection's transaction and note who did it."""
    from alembic import command, config  # noqa: PLC0415 - a third of a second, for catalogs of other versions only

    setup = config.Config()
    setup.set_main_option("script_location", "trickle.catalog:migrations")
    setup.set_main_option("path_separator", "os")
    setup.attributes["connection"] = connection
    with _one_migration:
        if connection.dialect.name == "postgresql":
            _enter_schema(connection)
        command.upgrade(setup, HEAD)
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise InternalError("the migration would leave rows that point nowhere")
    _note_migration(connection)


def _enter_schema(connection: Connection) -> None:
    # CREATE SCHEMA IF NOT EXISTS asks for the privilege even when the schema is there.
    found = text("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :name")
    if connection.execute(found, {"name": POSTGRES_SCHEMA}).scalar() is None:
        connection.execute(text(f"CREATE SCHEMA {POSTGRES_SCHEMA}"))
    connection.execute(text(f"SET LOCAL search_path TO {POSTGRES_SCHEMA}"))


def _note_migration(connection: Connection) -> None:
    now, writer = datetime.now(UTC), code_version()
    connection.execute(
        insert_into(connection, MetaRow)
        .values(
            id=1,
            warehouse_id=uuid.uuid4().hex,
            format_version=FORMAT_VERSION,
            created_by=writer,
            created_at=now,
            migrated_by=writer,
            migrated_at=now,
        )
        .on_conflict_do_nothing()
    )
    connection.execute(update(MetaRow).values(migrated_by=writer, migrated_at=now, format_version=FORMAT_VERSION))
