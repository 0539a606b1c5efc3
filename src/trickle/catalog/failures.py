"""Database errors become Trickle's own. The class follows from the error's code, never from its text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from trickle.errors import CatalogUnreachable, ConcurrentModification, InternalError, TrickleError

# Primary result codes, stable by SQLite's promise; the module names few of them.
_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_UNUSABLE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}
_SQLITE_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}

_PG_UNIQUE = "23505"
_PG_FOREIGN_KEY = "23503"
_PG_READ_ONLY = "25006"
_PG_LOCK_TIMEOUT = "55P03"
_PG_NO_PRIVILEGE = "42501"
_PG_CONFLICT_CLASS = "40"
# connection, authorisation, no such database, resources, intervention, system
_PG_UNREACHABLE_CLASSES = {"08", "28", "3D", "53", "57", "58"}


def _unreachable(shown: str, detail: str) -> CatalogUnreachable:
    return CatalogUnreachable(
        f"the catalog {shown} does not answer",
        detail=detail,
        hint="check that the database runs and that the address, user and password are right, then try again",
    )


def _busy(shown: str, detail: str) -> CatalogUnreachable:
    return CatalogUnreachable(
        f"the catalog {shown} is busy",
        detail=detail,
        hint="another process has held it for too long: look for one that hangs, then try again",
    )


def _overtaken(detail: str) -> ConcurrentModification:
    return ConcurrentModification(
        "another session changed the catalog first", detail=detail, hint="run the statement again"
    )


def _refused(detail: str) -> InternalError:
    return InternalError("the catalog refused a statement", detail=detail)


def _wrote_while_reading() -> InternalError:
    return InternalError("a read transaction tried to write to the catalog")


def from_sqlite(orig: sqlite3.Error, shown: str, *, writing: bool) -> TrickleError:
    """What an error of the SQLite driver means to the caller."""
    code = getattr(orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return _overtaken(str(orig))
    primary = code & 0xFF
    if primary in _SQLITE_BUSY:
        return _busy(shown, str(orig))
    if primary == sqlite3.SQLITE_READONLY:
        return _unreachable(shown, str(orig)) if writing else _wrote_while_reading()
    if primary in _SQLITE_UNUSABLE:
        return _unreachable(shown, str(orig))
    return _refused(str(orig))


def _from_postgres(error: DBAPIError, shown: str, writing: bool) -> TrickleError:
    detail = str(error.orig).strip()
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        lost = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
        return _unreachable(shown, detail) if lost else _refused(detail)
    if state == _PG_FOREIGN_KEY or state.startswith(_PG_CONFLICT_CLASS):
        return _overtaken(detail)
    if state == _PG_LOCK_TIMEOUT:
        return _busy(shown, detail)
    if state == _PG_READ_ONLY:
        return _unreachable(shown, detail) if writing else _wrote_while_reading()
    if state == _PG_NO_PRIVILEGE or state[:2] in _PG_UNREACHABLE_CLASSES:
        return _unreachable(shown, detail)
    return _refused(detail)


def _from_statement(error: StatementError, shown: str, writing: bool) -> TrickleError:
    match error:
        case StatementError(orig=TrickleError() as own):
            return own
        case DBAPIError(orig=sqlite3.Error() as orig):
            return from_sqlite(orig, shown, writing=writing)
        case DBAPIError():
            return _from_postgres(error, shown, writing)
        case _:
            return _refused(str(error.orig))


@contextmanager
def translated(shown: str, *, writing: bool) -> Iterator[None]:
    """Raise Trickle's errors for those of the database."""
    try:
        yield
    except StatementError as error:
        raise _from_statement(error, shown, writing) from error
    except PoolTimeout as error:
        raise _busy(shown, "all connections of this process are in use") from error


def _is_unique_violation(error: IntegrityError) -> bool:
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorcode in _SQLITE_UNIQUE
    return getattr(error.orig, "sqlstate", None) == _PG_UNIQUE


@contextmanager
def unique_or(tx: Session, taken: Callable[[], TrickleError]) -> Iterator[None]:
    """Run the block in a savepoint; a unique violation becomes the given error and the transaction lives on."""
    try:
        with tx.begin_nested():
            yield
    except IntegrityError as error:
        if not _is_unique_violation(error):
            raise
        raise taken() from None
