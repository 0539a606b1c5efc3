"""What people do with fuses: look at them, look at what blew one, and put it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import fuses, history, relations, streams
from trickle.catalog.records import Action, Fuse, FuseReset, FuseState, Initiator, Kind, Outcome, Relation, StreamTable
from trickle.errors import InvalidOption, UserError
from trickle.gates.facts import FuseFacts, FuseRating
from trickle.gates.fuse import baseline_of
from trickle.refresh.board import Board
from trickle.refresh.facts import Gathered
from trickle.refresh.members import Cut, member_of, take_cut
from trickle.refresh.options import OPTIONS
from trickle.refresh.state import State
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class FuseStatusRow:
    """A fuse: of a stream table, or of a source."""

    name: str
    kind: str
    mode: str
    state: str
    blown_at: datetime | None
    blow_reason: str | None
    insertions_mean: float | None
    insertions_stddev: float | None
    deletions_mean: float | None
    deletions_stddev: float | None
    last_delta: int | None
    """Changed rows that blew it, or else those of the last refresh."""
    ceiling: int | None
    max_ratio: float | None
    sensitivity: float | None
    window_size: int | None
    last_reset_at: datetime | None
    last_reset_action: str | None


def set_source_fuse(warehouse: Warehouse, name: TableName, options: Mapping[str, object]) -> None:
    """Give a source a fuse of its own, which guards everything that reads it; mode ``none`` takes it away."""
    checked = {key: OPTIONS[key](key, value) for key, value in options.items() if value is not None}
    now = warehouse.clock.now()
    with warehouse.catalog.write() as tx:
        relation = relations.get(tx, name)
        if relation.kind not in (Kind.TABLE, Kind.ATTACHED, Kind.REPLICA):
            raise InvalidOption(
                f"{relation.name} is {relation.kind.words}, not a source",
                hint=f"alter_stream_table('{relation.name}', fuse='adaptive')"
                if relation.kind is Kind.STREAM_TABLE
                else None,
            )
        rating = {name.removeprefix("fuse_"): value for name, value in checked.items() if name != "fuse"}
        fuses.put_rating(tx, relation.id, mode=checked["fuse"], now=now, **rating)


def fuse_status(warehouse: Warehouse) -> list[FuseStatusRow]:
    """All fuses that are in use: those of stream tables first, by name."""
    board = Board(warehouse)
    with warehouse.catalog.read() as tx:
        found = streams.listing(tx)
    rows = [_status(board, s.relation, _own_facts(board, s)) for s in found]
    sources = [board.lineage.tables[i] for i in board.fuses if not board.lineage.is_stream_table(i)]
    for source in sorted(sources, key=lambda relation: str(relation.name)):
        rating = board.source_rating(board.fuses[source.id])
        rows.append(_status(board, source, FuseFacts(str(source.name), rating, board.is_blown(source.id))))
    return [row for row in rows if row.mode != "none" or row.state == FuseState.BLOWN.value]


def status_of(warehouse: Warehouse, name: TableName) -> FuseStatusRow:
    """The fuse of one stream table or source."""
    board = Board(warehouse)
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        stream = streams.find(tx, name)
    if stream is not None:
        return _status(board, relation, _own_facts(board, stream))
    fuse = board.fuses.get(relation.id)
    rating = FuseRating() if fuse is None else board.source_rating(fuse)
    return _status(board, relation, FuseFacts(str(relation.name), rating, board.is_blown(relation.id)))


def _own_facts(board: Board, stream: StreamTable) -> FuseFacts:
    sources = [board.lineage.tables[i] for i in sorted(board.lineage.reads.get(stream.relation.id, ()))]
    return Gathered(board, stream, sources, {}, board.warehouse.clock.now()).fuses[0]


def _status(board: Board, relation: Relation, facts: FuseFacts) -> FuseStatusRow:
    fuse = board.fuses.get(relation.id)
    rating = facts.rating
    insertions = baseline_of(rating, [sample.inserted for sample in facts.samples])
    deletions = baseline_of(rating, [sample.deleted for sample in facts.samples])
    return FuseStatusRow(
        name=str(relation.name),
        kind=relation.kind.value,
        mode=rating.mode,
        state=(FuseState.BLOWN if facts.blown else FuseState.ARMED).value,
        blown_at=None if fuse is None else fuse.blown_at,
        blow_reason=None if fuse is None else fuse.blow_reason,
        insertions_mean=None if insertions is None else insertions.mean,
        insertions_stddev=None if insertions is None else insertions.sigma,
        deletions_mean=None if deletions is None else deletions.mean,
        deletions_stddev=None if deletions is None else deletions.sigma,
        last_delta=_last_delta(fuse, facts),
        ceiling=rating.ceiling,
        max_ratio=rating.max_ratio,
        sensitivity=rating.sensitivity,
        window_size=rating.window_size,
        last_reset_at=None if fuse is None else fuse.last_reset_at,
        last_reset_action=None if fuse is None or fuse.last_reset_action is None else fuse.last_reset_action.value,
    )


def _last_delta(fuse: Fuse | None, facts: FuseFacts) -> int | None:
    if facts.blown and fuse is not None and fuse.blow_details:
        blown = fuse.blow_details.get("delta_row_count")
        return blown if isinstance(blown, int) else None
    return facts.samples[-1].total if facts.samples else None


def reset_fuse(warehouse: Warehouse, name: TableName, action: str | None, by: str | None = None) -> None:
    """Put a blown fuse back. What becomes of the changes that wait is for the caller to say: there is no default."""
    chosen = fuses.check_action("" if action is None else action)
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
        fuse = fuses.find(tx, relation.id)
    if fuse is None or fuse.state is not FuseState.BLOWN:
        raise UserError(f"the fuse of {relation.name} is not blown", hint="fuse_status() shows all fuses")
    readers = [relation.id]
    if relation.kind is not Kind.STREAM_TABLE:
        readers = sorted(Board(warehouse).lineage.readers.get(relation.id, ()))
    now = warehouse.clock.now()
    positions = {reader: _now(warehouse, reader) for reader in readers} if chosen is FuseReset.SKIP_CHANGES else {}
    with warehouse.catalog.write() as tx:
        for reader in readers:
            _act(tx, reader, chosen, positions.get(reader, {}), now)
        fuses.reset(tx, relation.id, chosen, by, now)


def _act(tx: Session, relation_id: int, action: FuseReset, positions: Cut, now: datetime) -> None:
    stream = streams.lock(tx, relation_id)
    match action:
        case FuseReset.REINITIALIZE:
            streams.update(tx, relation_id, now=now, needs_reinitialize=True)
        case FuseReset.SKIP_CHANGES:
            _skip(tx, stream, positions, now)
        case FuseReset.APPLY:
            pass


def _skip(tx: Session, stream: StreamTable, positions: Cut, now: datetime) -> None:
    """Go on from where the sources stand, with the contents as they are."""
    relation_id = stream.relation.id
    frontier = {source: str(position) for source, position in positions.items()}
    state = State.of(stream)
    # The number is spent: a refresh that began before must not be committed on top.
    streams.update(tx, relation_id, now=now, refresh_number=stream.refresh_number + 1)
    if state is not None:
        streams.update(tx, relation_id, now=now, state=replace(state, frontier=frontier).to_json())
    streams.set_frontier(tx, relation_id, frontier)
    history.record(
        tx,
        relation_id=relation_id,
        name=str(stream.relation.name),
        action=Action.SKIP,
        status=Outcome.SKIPPED,
        initiated_by=Initiator.MANUAL,
        started_at=now,
        ended_at=now,
        version_before=stream.version,
        version_after=stream.version,
        reason="reset_fuse: the waiting changes were left out",
        frontier={str(source): position for source, position in frontier.items()},
        details={"skipped_from": {str(s): p for s, p in stream.frontier.items()}},
    )


def _now(warehouse: Warehouse, relation_id: int) -> Cut:
    return take_cut(warehouse, [member_of(warehouse, relation_id)])
