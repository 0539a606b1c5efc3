"""What every way of capture offers to ingest.

A position is a text that starts with the mode, so that nobody reads the position of one capture with another:
``trigger:<pg_snapshot>``, ``wal:<lsn>``. The order of use is: ``arm``, then take a position, then load the table as of
that position; later ``changes`` between positions; ``forget`` only when the lake holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from trickle.errors import InternalError
from trickle.postgres.tables import SourceTable


@dataclass(frozen=True)
class Changes:
    """What happened to one table between two positions."""

    rows: pa.Table
    """The used columns and ``__trickle_weight`` (int64): +1 and -1 in the order of the changes, or their net."""
    truncated: bool = False
    """A TRUNCATE lies in the range; ``rows`` holds what came after it."""
    by_key: bool = False
    """Rows of weight -1 hold the columns of ``key`` alone, everything else is NULL. Each key is there at most once
    with -1, and stands for the row that the replica has; and at most once with +1.
    """
    key: tuple[str, ...] = ()
    """With ``by_key``: the columns that identify a row of the replica."""
    kept: pa.Table | None = None
    """With ``by_key``: values that the source did not send because they did not change. A row (``new``, ``old``,
    ``column``) of int64, int64 and string says: the value of ``column`` in ``rows[new]``, NULL there, is the one of the
    replica's row that ``rows[old]`` identifies.
    """
    schema_changed: str | None = None
    """In words, why the changes of this table cannot be told: its used columns are no longer what they were, or what
    was captured was lost. ``rows`` is empty then, and the table has to be loaded anew.
    """


@dataclass(frozen=True)
class Bound:
    """How much of one table is taken in on the driver at a time. What is more than that does not fit into its memory,
    at no later try either; Spark loads such a table anew.
    """

    rows: int = 5_000_000
    bytes: int = 1024**3

    def exceeded(self, rows: int, size: int) -> str | None:
        """In words, that so much is too much.

        >>> Bound().exceeded(6_000_000, 1000), Bound().exceeded(5_000_000, 1000)
        ('too much changed to be taken in row by row: 6,000,000 changes or more, of 0 MB', None)
        """
        if rows <= self.rows and size <= self.bytes:
            return None
        return f"too much changed to be taken in row by row: {rows:,} changes or more, of {size // 1024**2:,} MB"


class State(StrEnum):
    """How a part of a capture is doing."""

    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True)
class Health:
    """How the capture of one table, or one slot, is doing, in words."""

    what: str
    state: State
    message: str
    rows: int | None = None
    """Changes that wait, where they can be counted."""
    bytes: int | None = None
    """Room that waiting changes take at the server."""


class Capture(Protocol):
    """One way to learn what changes in the tables of one database."""

    mode: str
    """``trigger``, ``wal`` or ``polling``."""

    def arm(self, table: SourceTable) -> None:
        """Begin to capture a table. Comes before the snapshot of its initial load; may be repeated."""

    def disarm(self, table: SourceTable) -> None:
        """Leave nothing behind at the source. May be repeated, also when the table is gone."""

    def position(self) -> str:
        """Where the database stands now; when much has piled up, a place on the way there."""

    def has_more(self, upto: str) -> bool:
        """Whether so much lies behind a position that another piece should be taken in at once."""

    def loaded(self, snapshot: str) -> str:
        """The position of a table that was armed and then loaded as this snapshot sees it."""

    def moved(self, after: str, upto: str) -> str:
        """Where a table stands that was at ``after`` and has been given its changes up to ``upto``."""

    def must_move(self, after: Iterable[str], upto: str) -> bool:
        """Whether positions should move though nothing changed, so that the source can let go of what it keeps."""

    def changes(
        self, tables: Sequence[SourceTable], after: Mapping[int, str], upto: str
    ) -> Iterator[tuple[SourceTable, Changes]]:
        """What happened to each table after its position in ``after`` (by oid) and up to ``upto``; tables without
        changes may be left out. HistoryLost when nothing can be told of any table.
        """

    def forget(self, upto: str) -> None:
        """Everything up to here is in the lake, for all tables."""

    def health(self, tables: Sequence[SourceTable]) -> list[Health]:
        """How the capture is doing, for each of its tables and for itself."""


def position_of(text: str, mode: str) -> str:
    """The position without its mode.

    >>> position_of("wal:0/16B3748", "wal")
    '0/16B3748'
    """
    found, _, rest = text.partition(":")
    if found != mode or not rest:
        raise InternalError(f"not a position of {mode} capture", detail=repr(text))
    return rest
