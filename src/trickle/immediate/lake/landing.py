"""A statement on a table that IMMEDIATE stream tables follow.

The statement has staged its change of the table and not committed it. For the stream tables that follow, the staged
change is the change of a source: they are computed from it one after the other, each from the staged changes of those
before it, and at the end all of them and the table are one unit (``apply/unit.py``). Readers take pins, so they see
everything at once; a failure before the unit is decided leaves nothing.

Two statements at once on the table, or on two tables with a stream table in common, cannot both be committed: the
second finds the number of the pin, or of the stream table, taken (ConcurrentModification), and is computed anew.

Publications are brought along when the statement has happened and other statements may go on: their servers may be slow
or dead, and what becomes of them is no part of the statement.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from trickle.apply.unit import PinnedMember, commit_unit
from trickle.catalog import pins
from trickle.catalog.records import Pin, Relation
from trickle.immediate.lake.rebasing import rebase
from trickle.lake.commit import TableCommit
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.publish.following import Patience, follow
from trickle.refresh.brought import Brought, staged_base
from trickle.refresh.execute import refresh
from trickle.tables.pinning import followers
from trickle.warehouse import Warehouse

_logger = logging.getLogger(__name__)


class Following:
    """Lets IMMEDIATE stream tables change together with the tables that they follow (``Warehouse.immediate``)."""

    def __init__(self) -> None:
        self._patience = Patience()

    def land(
        self,
        warehouse: Warehouse,
        table: Relation,
        pin: Pin,
        snapshot: Snapshot,
        prepared: Prepared,
        commit: TableCommit,
    ) -> None:
        """Commit the staged change of a table and of all that follow it as one unit."""
        member = PinnedMember(table.id, pin.number + 1, commit, commit.version, pin.position)
        with warehouse.catalog.read() as tx:
            readers: Sequence[Relation] = followers(tx, [table.id])
        if readers:
            brought = Brought(staged={table.id: staged_base(snapshot, prepared)}, members=[member])
            refresh(warehouse, [reader.name for reader in readers], brought=brought)
        else:
            commit_unit(warehouse, [member])

    def catch_up(self, warehouse: Warehouse, table: Relation) -> None:
        """Take in what the log of a table has beyond its pin."""
        with warehouse.catalog.read() as tx:
            if pins.find(tx, table.id) is None:
                return
        rebase(warehouse, [table])

    def publish(self, warehouse: Warehouse, table: Relation) -> None:
        """Bring what changed with a table to where it is published; those that failed lately rest for a while."""
        try:
            with warehouse.catalog.read() as tx:
                readers = followers(tx, [table.id])
            if readers:
                follow(warehouse, [reader.name for reader in readers], self._patience)
        except Exception:  # The statement has happened: no failure may look as if it had not.
            _logger.warning("what follows %s was not published", table.name, exc_info=True)
