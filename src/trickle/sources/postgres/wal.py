"""Capture by WAL: a publication and a slot for each attached database, read in batches.

Nothing is acknowledged before the lake has it. ``changes`` peeks, and may do so any number of times; ``forget``, which
ingest calls when the new positions are in the catalog, advances the slot. A process that dies in between leaves the
slot behind the positions, and what it gives again is left out by position: nothing twice, nothing lost.

A slot that somebody removed, recreated or advanced, whose WAL the server gave up, or whose server was restored from a
backup, no longer joins the positions without a gap. That is seen before anything is read (``HistoryLost``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from psycopg import errors

from trickle.errors import HistoryLost, SourceRefused
from trickle.postgres.connect import Connection
from trickle.postgres.tables import SourceTable, describe_oids
from trickle.sources.postgres import slots
from trickle.sources.postgres.books import texts, values
from trickle.sources.postgres.capture import Bound, Changes, Health, State
from trickle.sources.postgres.eligible import Obstacle, obstacle
from trickle.sources.postgres.partitions import parts_lost
from trickle.sources.postgres.positions import MODE, Snapshot, WalPosition, show_lsn
from trickle.sources.postgres.replay import TableLog, collect

MEGABYTE = 1024 * 1024

PIECE_CHANGES = 500_000
PIECE_BYTES = 256 * MEGABYTE
"""About how much is taken in at once when much has piled up."""

# The slot was given up at this moment; before version 18 also: the publication was not there when a change was made.
_GONE = (errors.ObjectNotInPrerequisiteState, errors.UndefinedObject)

IDLE_BYTES = 16 * MEGABYTE
"""WAL of others after which the slot is advanced though nothing happened to its tables."""


class WalCapture:
    """Capture of one database. ``name`` is that of its slot and its publication: lowercase letters, digits and
    underscores, at most 63 of them, and of no other attachment on the same server.
    """

    mode = MODE

    def __init__(
        self,
        connection: Connection,
        name: str,
        *,
        warning_mb: int = 100,
        critical_mb: int = 1024,
        piece_changes: int = PIECE_CHANGES,
        piece_bytes: int = PIECE_BYTES,
        most_rows: int = Bound.rows,
        most_bytes: int = Bound.bytes,
    ) -> None:
        self._connection = connection
        self._name = name
        self._warning = warning_mb * MEGABYTE
        self._critical = critical_mb * MEGABYTE
        self._piece_changes = piece_changes
        self._piece_bytes = piece_bytes
        self._bound = Bound(most_rows, most_bytes)

    def obstacle(self, table: SourceTable) -> Obstacle | None:
        """Why a table cannot be captured this way; None when it can."""
        level = slots.wal_level(self._connection)
        if level != "logical":
            hint = "ALTER SYSTEM SET wal_level = logical, then restart the server; or use cdc_mode = 'trigger'"
            return Obstacle(f"the server's wal_level is {level}", hint)
        if not slots.may_replicate(self._connection):
            return Obstacle("the user may not make replication slots", "ALTER ROLE ... REPLICATION as a superuser")
        found = describe_oids(self._connection, [table.oid, *(part.oid for part in table.parts)])
        return obstacle(table, found, self._connection.info.server_version)

    def arm(self, table: SourceTable) -> None:
        """Publish the table, and make publication and slot where they are missing or lost."""
        found = self.obstacle(table)
        if found is not None:
            message = f"{table.shown} cannot be captured from the WAL"
            raise SourceRefused(message, detail=found.reason, hint=found.hint)
        slots.ensure_publication(self._connection, self._name)
        slot = slots.find_slot(self._connection, self._name)
        if slot is not None and slot.lost:
            slots.drop_slot(self._connection, self._name)
            slot = None
        if slot is None:
            slots.create_slot(self._connection, self._name)
        slots.publish(self._connection, self._name, table)

    def disarm(self, table: SourceTable) -> None:
        """Take the table out of the publication; with the last one, slot and publication go."""
        slots.unpublish(self._connection, self._name, [table.oid, *(part.oid for part in table.parts)])
        if not slots.published(self._connection, self._name):
            slots.drop_slot(self._connection, self._name)
            slots.drop_publication(self._connection, self._name)

    def loaded(self, snapshot: str) -> str:
        """The position of a table that was armed and then loaded as this snapshot sees it."""
        # On disk, so that it may be read up to here.
        until = slots.flushed(self._connection)
        return str(WalPosition(self._slot().confirmed, Snapshot.parse(snapshot), until))

    def position(self) -> str:
        """Where the database stands now; when much has piled up, a place on the way there."""
        now = slots.flushed(self._connection)
        slot = slots.find_slot(self._connection, self._name)
        # Of a slot that is gone ``changes`` tells.
        if slot is not None and slot.lost is None and now - slot.confirmed > self._piece_bytes:
            stop = self._stop_before()
            now = now if stop is None else min(stop, now)
        return str(WalPosition(now))

    def _stop_before(self) -> int | None:
        try:
            return slots.stop_before(self._connection, self._name, self._piece_changes, self._piece_bytes)
        except _GONE:
            # ``changes`` tells.
            return None

    def has_more(self, upto: str) -> bool:
        """Whether a piece or more is left."""
        return slots.on_disk(self._connection) - WalPosition.parse(upto).lsn > self._piece_bytes

    def moved(self, after: str, upto: str) -> str:
        """Where a table stands that was at ``after`` and has been given its changes up to ``upto``."""
        return str(WalPosition.parse(after).moved(WalPosition.parse(upto)))

    def must_move(self, after: Iterable[str], upto: str) -> bool:
        """Other tables of the server write WAL too, and it is kept from the slot's position on."""
        end = WalPosition.parse(upto).lsn
        return any(end - WalPosition.parse(one).lsn > IDLE_BYTES for one in after)

    def changes(
        self, tables: Sequence[SourceTable], after: Mapping[int, str], upto: str
    ) -> Iterator[tuple[SourceTable, Changes]]:
        """What happened to each table after its position and up to ``upto``."""
        end = WalPosition.parse(upto)
        begins = {table.oid: WalPosition.parse(after[table.oid]) for table in tables}
        self._check(begins.values(), end)
        now = describe_oids(self._connection, begins)
        unaltered = slots.unaltered(self._connection, self._name)
        logs: dict[int, TableLog] = {}
        for table in tables:
            found = now.get(table.oid)
            if found is None:
                continue
            why = parts_lost(self._connection, table, found)
            if not {one.oid for one in slots.members(table)} <= unaltered:
                why = f"it was not all the time in the publication {self._name!r}, as Trickle made that"
            if why is not None:
                yield table, Changes(values(table, texts(table, [], [])), schema_changed=why)
                continue
            log = TableLog(table, begins[table.oid], self._bound)
            logs |= {part.oid: log for part in found.parts}
        if not logs:
            return
        try:
            yield from collect(slots.peek(self._connection, self._name, end.end), logs, end)
        except _GONE as error:
            raise self._lost(str(error).splitlines()[0]) from error

    def forget(self, upto: str) -> None:
        """Advance the slot."""
        end = WalPosition.parse(upto)
        slot = slots.find_slot(self._connection, self._name)
        # A slot that is gone has nothing to forget; the next ingest says so.
        if slot is not None and slot.lost is None and slot.confirmed < end.lsn:
            slots.advance(self._connection, self._name, end.lsn)

    def health(self, tables: Sequence[SourceTable]) -> list[Health]:
        """The slot, then each table."""
        found = describe_oids(self._connection, (oid for t in tables for oid in (t.oid, *(p.oid for p in t.parts))))
        published, unaltered = (ask(self._connection, self._name) for ask in (slots.published, slots.unaltered))
        return [self.slot_health(), *(self._table_health(table, found, published, unaltered) for table in tables)]

    def slot_health(self) -> Health:
        """How much WAL the server keeps for the slot, and whether it still can."""
        slot = slots.find_slot(self._connection, self._name)
        what = f"slot {self._name}"
        if slot is None or slot.lost is not None:
            why = "it is gone" if slot is None else slot.lost
            return Health(what, State.CRITICAL, f"{why}: the replicas are loaded anew by the next ingest")
        kept = f"the server keeps {slot.retained / MEGABYTE:.0f} MB of WAL for it"
        if slot.is_unreserved:
            return Health(what, State.CRITICAL, f"{kept}, and may remove it soon", bytes=slot.retained)
        if slot.retained >= self._critical:
            return Health(what, State.CRITICAL, f"{kept}: its disk may fill up", bytes=slot.retained)
        if slot.retained >= self._warning:
            return Health(what, State.WARNING, kept, bytes=slot.retained)
        return Health(what, State.OK, kept, bytes=slot.retained)

    def _table_health(
        self, table: SourceTable, found: Mapping[int, SourceTable], published: set[int], unaltered: set[int]
    ) -> Health:
        if table.oid not in found:
            return Health(table.shown, State.CRITICAL, "the table is gone")
        members = {one.oid for one in slots.members(table)}
        if not members <= published:
            return Health(table.shown, State.CRITICAL, f"it is not in the publication {self._name!r}")
        if not members <= unaltered:
            why = f"the publication {self._name!r} was altered or made again: the next ingest loads the table anew"
            return Health(table.shown, State.CRITICAL, why)
        hindered = obstacle(table, found, self._connection.info.server_version)
        if hindered is not None:
            return Health(table.shown, State.CRITICAL, f"{hindered.reason}: {hindered.hint}")
        return Health(table.shown, State.OK, "captured from the WAL")

    def _slot(self) -> slots.Slot:
        slot = slots.find_slot(self._connection, self._name)
        if slot is None:
            raise self._lost("somebody removed it")
        if slot.lost is not None:
            raise self._lost(slot.lost)
        return slot

    def _check(self, begins: Iterable[WalPosition], end: WalPosition) -> None:
        """That the slot still has everything from the earliest position on."""
        slot = self._slot()
        first = min((begin.lsn for begin in begins), default=slot.confirmed)
        if slot.confirmed > first:
            why = f"it was recreated or advanced to {show_lsn(slot.confirmed)}, and the lake is at {show_lsn(first)}"
            raise self._lost(why)
        if end.lsn < first:
            raise self._lost(f"the server is at {show_lsn(end.lsn)}, before the lake at {show_lsn(first)}")

    def _lost(self, why: str) -> HistoryLost:
        return HistoryLost(
            f"the replication slot {self._name!r} no longer has what changed",
            detail=why,
            hint="the replicas are loaded anew by the next ingest",
        )
