"""A statement on a table that IMMEDIATE stream tables follow.

The statement has staged its change of the table and not committed it. For the stream tables that follow, the staged
change is the change of a source: they are computed from it one after the other, each from the staged changes of those
before it, and at the end all of them and the table are one unit (``apply/unit.py``). Readers take pins, so they see
everything at once; a failure before the unit is decided leaves nothing.

Two statements at once on the table, or on two tables with a stream table in common, cannot both be committed: the
second finds the number of the pin, or of the stream table, taken (ConcurrentModification), and is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from trickle.apply.unit import PinnedMember, application_id, commit_unit
from trickle.catalog import pins
from trickle.catalog.records import Pin, Relation
from trickle.immediate.lake.rebasing import rebase
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.publish.following import follow
from trickle.refresh.brought import Brought, staged_base
from trickle.refresh.execute import refresh
from trickle.tables.pinning import followers
from trickle.warehouse import Warehouse


class Following:
    """Lets IMMEDIATE stream tables change together with the tables that they follow (``Warehouse.immediate``)."""

    def land(self, warehouse: Warehouse, table: Relation, pin: Pin, snapshot: Snapshot, prepared: Prepared) -> int:
        """Commit the staged change of a table and of all that follow it as one unit; the table's new version."""
        number = pin.number + 1
        commit = prepared.as_commit(app=(application_id(table.uid), number))
        member = PinnedMember(table.id, number, commit, commit.version, pin.position)
        with warehouse.catalog.read() as tx:
            readers: Sequence[Relation] = followers(tx, [table.id])
        if readers:
            brought = Brought(staged={table.id: staged_base(snapshot, prepared)}, members=[member])
            refresh(warehouse, [reader.name for reader in readers], brought=brought)
            follow(warehouse, [reader.name for reader in readers])
        else:
            commit_unit(warehouse, [member])
        return commit.version

    def catch_up(self, warehouse: Warehouse, table: Relation) -> None:
        """Take in what the log of a table has beyond its pin."""
        with warehouse.catalog.read() as tx:
            if pins.find(tx, table.id) is None:
                return
        rebase(warehouse, [table])
