"""Errors of a PostgreSQL server become Trickle's own. The class follows from SQLSTATE, never from the text.

The remedy decides: what passes by itself (server gone, too many connections, disk full, deadlock) is transient and
tried again; what somebody must change on the server (password, rights, version) is not; a slot or a snapshot that is
gone means that history is lost and the replica has to be loaded anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import ConnStatus

from trickle.errors import (
    ConcurrentModification,
    HistoryLost,
    InternalError,
    InvalidData,
    SourceRefused,
    SourceUnreachable,
    TrickleError,
    UnknownTable,
)

_CONFLICT = "40"
_LOCK_NOT_AVAILABLE = "55P03"
_DATA = "22"
_CONSTRAINT = "23"
_RAISED = "P0"
_DISK_FULL = "53100"
_TOO_MANY = "53300"
_NO_RIGHT = "42501"
_READ_ONLY = "25006"
_NO_TABLE = {"42P01", "3F000"}
_NO_DATABASE = "3D000"
_AUTHORISATION = "28"
# connection, resources, intervention, system
_AWAY = {"08", "53", "57", "58"}
_NOT_PREPARED = "55000"
_NO_OBJECT = "42704"


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise Trickle's errors for those of the server at ``place``, which is shown as it is."""
    try:
        yield
    except psycopg.Error as error:
        raise from_postgres(error, place) from error


def from_postgres(error: psycopg.Error, place: str) -> TrickleError:
    """What an error of the driver or the server means to the caller."""
    detail = _detail(error)
    state = error.sqlstate
    if state is None:
        return _without_state(error, detail, place)
    if state[:2] == _AUTHORISATION or state == _NO_DATABASE:
        return _not_let_in(detail, place)
    if state in (_NO_RIGHT, _READ_ONLY):
        return _refused(
            f"the PostgreSQL server at {place} does not allow this",
            detail,
            "grant its user the right",
        )
    return _by_state(state, detail, place)


def _by_state(state: str, detail: str, place: str) -> TrickleError:
    if state == _DISK_FULL:
        return SourceUnreachable(
            f"the PostgreSQL server at {place} has no room left", detail=detail, hint="free disk space on the server"
        )
    if state == _TOO_MANY:
        return SourceUnreachable(
            f"the PostgreSQL server at {place} has no connection left",
            detail=detail,
            hint="raise max_connections, or close connections that nobody uses",
        )
    if state[:2] == _CONFLICT or state == _LOCK_NOT_AVAILABLE:
        return ConcurrentModification(
            f"another session of the PostgreSQL server at {place} was in the way", detail=detail, hint="try again"
        )
    if state[:2] in _AWAY:
        return _away(detail, place)
    if state in _NO_TABLE:
        return UnknownTable(f"the PostgreSQL server at {place} does not have this table", detail=detail)
    if state in (_NOT_PREPARED, _NO_OBJECT):
        return HistoryLost(
            f"the PostgreSQL server at {place} no longer has what capture relies on",
            detail=detail,
            hint="the replicas are loaded anew by the next ingest",
        )
    if state[:2] == _CONSTRAINT:
        return InvalidData(f"a constraint of the PostgreSQL database at {place} refuses a row", detail=detail)
    if state[:2] == _RAISED:
        return InvalidData(f"a trigger or function of the database at {place} raised an error", detail=detail)
    if state[:2] == _DATA:
        return InvalidData(f"the PostgreSQL server at {place} refused a value", detail=detail)
    return InternalError(f"the PostgreSQL server at {place} refused a statement", detail=f"{detail} [{state}]")


def _without_state(error: psycopg.Error, detail: str, place: str) -> TrickleError:
    """Errors that libpq makes by itself: no answer, or a refusal before the session began, which it gives no code. But
    it tells whether the server asked for a password, and then somebody was there who did not let us in.
    """
    link = error.pgconn
    if link is not None and link.status == ConnStatus.BAD and (link.needs_password or link.used_password):
        return _not_let_in(detail, place)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return _away(detail, place)
    return InternalError("the PostgreSQL driver failed", detail=detail)


def _away(detail: str, place: str) -> SourceUnreachable:
    return SourceUnreachable(
        f"no connection to the PostgreSQL server at {place}",
        detail=detail,
        hint="check that the server runs and that the address, user and password are right, then try again",
    )


def _not_let_in(detail: str, place: str) -> SourceRefused:
    return _refused(
        f"the PostgreSQL server at {place} does not let Trickle in",
        detail,
        "check user, password and database in the address, and the server's pg_hba.conf",
    )


def _refused(message: str, detail: str, hint: str) -> SourceRefused:
    return SourceRefused(message, detail=detail, hint=hint)


def _detail(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
