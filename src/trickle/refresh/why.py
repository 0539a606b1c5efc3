"""What all gates of the first phase say now, also those after the one that decides."""

from __future__ import annotations

from collections.abc import Sequence

from trickle.catalog.records import Initiator
from trickle.gates.verdict import Verdict
from trickle.refresh.gating import Gatekeeper, Tick
from trickle.refresh.members import member_of, take_cut
from trickle.warehouse import Warehouse


def verdicts_now(warehouse: Warehouse, relation_ids: Sequence[int], tick: Tick) -> dict[str, Verdict]:
    """The verdict of each stream table, by its name, as if the tick were to refresh them."""
    found: dict[str, Verdict] = {}
    for relation_id in relation_ids:
        member = member_of(warehouse, relation_id)
        cut = take_cut(warehouse, [member], tick.cut, tick.board.caps)
        keeper = Gatekeeper(warehouse, tick.board, Initiator.SCHEDULER, False, cut, tick)
        found[str(member.name)] = keeper.explain(member)
    return found
