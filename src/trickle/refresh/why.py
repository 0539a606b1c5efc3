"""Why a stream table is not refreshed: what every gate says of it now."""

from __future__ import annotations

from trickle.algebra.names import TableName
from trickle.catalog import history, streams
from trickle.catalog.records import Action, Initiator
from trickle.errors import TrickleError
from trickle.gates.verdict import Verdict
from trickle.refresh.board import Board
from trickle.refresh.gating import Gatekeeper, Tick
from trickle.refresh.members import member_of, take_cut
from trickle.warehouse import Warehouse


def verdict_now(warehouse: Warehouse, name: TableName, tick: Tick | None = None) -> Verdict:
    """What all gates of the first phase say now; with the tick of a scheduler, also its schedule."""
    board = Board(warehouse) if tick is None else tick.board
    with warehouse.catalog.read() as tx:
        relation_id = streams.get(tx, name).relation.id
    member = member_of(warehouse, relation_id)
    cut = take_cut(warehouse, [member], {} if tick is None else tick.cut, board.caps)
    keeper = Gatekeeper(warehouse, board, Initiator.MANUAL, False, cut, tick)
    return keeper.explain(member)


def why_not_refreshed(warehouse: Warehouse, name: TableName, tick: Tick | None = None) -> list[str]:
    """The verdict in words, line by line, with what the history last said."""
    try:
        lines = list(verdict_now(warehouse, name, tick).lines())
    except TrickleError as error:
        lines = [f"cannot be asked: {error.message}"]
    with warehouse.catalog.read() as tx:
        stream = streams.get(tx, name)
        last = history.recent(tx, stream.relation.id, limit=1)
    if last:
        record = last[0]
        what = "held back" if record.action is Action.SKIP else record.action.value
        lines.append(f"last in the history, {record.started_at:%Y-%m-%d %H:%M:%S}: {what}, {record.status.value}")
        if record.reason:
            lines.append(f"  {record.reason}")
        if record.error_message:
            lines.append(f"  {record.error_message.splitlines()[0]}")
    return lines
