"""No capture at all: a table, foreign table, view or materialized view that is read whole from time to time.

What changed is the difference between two readings, which the replica itself knows: so there is nothing to arm, nothing
to tell, and nothing to forget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable
from trickle.sources.postgres.capture import Changes, Health, State


class PollingCapture:
    """The tables of one database, read whole; they need no right but to be read."""

    mode = "polling"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def arm(self, table: SourceTable) -> None:
        """Nothing to do."""

    def disarm(self, table: SourceTable) -> None:
        """Nothing to do."""

    def position(self) -> str:
        """What is visible now."""
        found = self._connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert found is not None
        return self.loaded(found[0])

    def has_more(self, upto: str) -> bool:  # noqa: ARG002 - as the protocol has it
        """Never: all of it is read at once."""
        return False

    def loaded(self, snapshot: str) -> str:
        """The position of a table that was read as this snapshot sees it."""
        return f"{self.mode}:{snapshot}"

    def moved(self, after: str, upto: str) -> str:  # noqa: ARG002 - as the protocol has it
        """Where it was: only a reading moves it."""
        return after

    def must_move(self, after: Iterable[str], upto: str) -> bool:  # noqa: ARG002 - as the protocol has it
        """Never: the source keeps nothing for it."""
        return False

    def changes(
        self,
        tables: Sequence[SourceTable],  # noqa: ARG002 - as the protocol has it
        after: Mapping[int, str],  # noqa: ARG002 - as the protocol has it
        upto: str,  # noqa: ARG002 - as the protocol has it
    ) -> Iterator[tuple[SourceTable, Changes]]:
        """None that could be told."""
        return iter(())

    def forget(self, upto: str) -> None:
        """Nothing to do."""

    def health(self, tables: Sequence[SourceTable]) -> list[Health]:
        """Each of them, read whole."""
        return [Health(table.shown, State.OK, "read whole at every poll") for table in tables]
