"""Base tables that a unit moves together with the IMMEDIATE stream tables that follow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trickle.apply.unit import OWN, PinnedMember
from trickle.lake.counts import ChangeCount
from trickle.lake.prepared import Prepared
from trickle.lake.snapshot import Snapshot
from trickle.refresh.making import Made
from trickle.refresh.members import Cut


@dataclass(frozen=True)
class Brought:
    """What a unit does to base tables: by a statement, or by taking in what somebody else wrote."""

    staged: Mapping[int, Made] = field(default_factory=dict)
    """The change of a statement, computed and not committed."""
    at: Cut = field(default_factory=dict)
    """Tables that are read elsewhere than at their pin."""
    members: Sequence[PinnedMember] = ()

    @property
    def is_statement(self) -> bool:
        return bool(self.staged)


def staged_base(snapshot: Snapshot, prepared: Prepared) -> Made:
    """The change of a base table that a statement has staged, with its number of rows."""
    # Rows that only come or only go do not cancel out, nor do change rows. Of none, a stream table that is behind would
    # take that nothing waits.
    one_way = not (prepared.inserted and prepared.deleted)
    exact = (prepared.changes is not None or one_way) and prepared.inserted + prepared.deleted > 0
    return Made(snapshot, {OWN: prepared}, change=ChangeCount(prepared.inserted, prepared.deleted, exact))
