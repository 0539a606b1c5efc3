"""What waits behind a fuse: the change is computed and staged, looked at, and thrown away."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle.algebra.names import TableName, quote, visible
from trickle.algebra.weights import WEIGHT
from trickle.catalog import relations
from trickle.catalog.records import Action, FuseState, Kind, Relation
from trickle.changes.between import ChangeBuffer
from trickle.engine import spark_errors
from trickle.errors import UserError
from trickle.gates.facts import Volume
from trickle.lake.stage import discard_stages
from trickle.lake.staged import staged_change
from trickle.lake.stages import stages_named
from trickle.refresh.board import Board
from trickle.refresh.compiled import Compiled
from trickle.refresh.compiling import compiled_for
from trickle.refresh.execute import usable_state
from trickle.refresh.facts import Gathered
from trickle.refresh.making import Made, Task, make_differential, make_full
from trickle.refresh.members import Cut, Member, member_of, take_cut
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse

_SHOWN = 20


@dataclass(frozen=True)
class SampleRow:
    """A row that would come or go."""

    operation: str
    row: str
    """As JSON."""


@dataclass(frozen=True)
class FuseInspection:
    """What would happen if the waiting changes were let through."""

    name: str
    state: str
    blow_reason: str | None
    waiting: Mapping[str, Volume]
    """By source: changed rows that wait, net."""
    rows_before: int
    inserted: int
    """Rows of the table itself that would come."""
    deleted: int
    sample: Sequence[SampleRow]
    downstream: Sequence[str]
    """Stream tables that this would reach."""


def inspect_fuse(warehouse: Warehouse, name: TableName, sample: int = _SHOWN) -> FuseInspection:
    """What the waiting changes would do: computed and staged, looked at, and thrown away."""
    board = Board(warehouse)
    with warehouse.catalog.read() as tx:
        relation = relations.get(tx, name)
    if relation.kind is not Kind.STREAM_TABLE:
        return _inspect_source(board, relation, sample)
    member = member_of(warehouse, relation.id)
    if member.stream.version is None:
        raise UserError(f"stream table {name} has not been filled yet", hint=f"REFRESH STREAM TABLE {name}")
    cut = take_cut(warehouse, [member], {}, board.caps)
    facts = Gathered(board, member.stream, member.reading.tables, cut, warehouse.clock.now())
    waiting = {source.name: facts.exact_volume(source.name) for source in facts.sources if source.moved}
    stage = uuid.uuid4().hex
    try:
        with stages_named(stage):
            made = _staged(warehouse, member, cut)
        columns = visible(made.snapshot.schema.names)
        rows = None
        if made.own is not None:
            rows = staged_change(warehouse.engine, made.snapshot, made.own, columns)
        inserted, deleted, shown = _looked_at(rows, columns, sample)
    finally:
        discard_stages(warehouse.location_of(relation), stage)
    rows_before = sum(file.live_rows or 0 for file in made.snapshot.files)
    return _inspection(board, relation, waiting, rows_before, inserted, deleted, shown)


def _staged(warehouse: Warehouse, member: Member, cut: Cut) -> Made:
    """The next contents, with exactly the rows that differ."""
    before = {source: LakePosition.parse(position) for source, position in member.stream.frontier.items()}
    # As if somebody read it: then the difference is kept and not the whole.
    task = Task(warehouse, replace(member, has_consumers=True), before, cut, {}, warehouse.clock.now())
    task = replace(task, compiled=compiled_for(task))
    state = usable_state(member.stream, task.compiled)
    by_changes = isinstance(task.compiled, Compiled) and state is not None
    if by_changes and state is not None and dict(state.frontier) == dict(member.stream.frontier):
        return make_differential(task, state)
    return make_full(task, Action.FULL)


def _looked_at(rows: DataFrame | None, columns: Sequence[str], sample: int) -> tuple[int, int, list[SampleRow]]:
    """How many rows would come and go, and some of them: those that would go first."""
    if rows is None:
        return 0, 0, []
    weight = F.col(WEIGHT)
    with spark_errors():
        counts = rows.agg(
            F.sum(F.when(weight > 0, weight)).alias("i"), F.sum(F.when(weight < 0, -weight)).alias("d")
        ).collect()[0]
        shown = rows.select(weight, F.to_json(F.struct(*[F.col(quote(c)) for c in columns])).alias("row"))
        some = shown.orderBy(weight).limit(sample).collect()
    found = [SampleRow("insert" if row[0] > 0 else "delete", row[1]) for row in some]
    return int(counts["i"] or 0), int(counts["d"] or 0), found


def _inspect_source(board: Board, source: Relation, sample: int) -> FuseInspection:
    """What waits at a source: since the frontier of the reader that is furthest behind."""
    warehouse, readers = board.warehouse, board.lineage.readers.get(source.id, set())
    fronts = [board.stream(reader).frontier.get(source.id) for reader in sorted(readers)]
    known = [LakePosition.parse(front) for front in fronts if front is not None]
    if not known:
        return _inspection(board, source, {}, 0, 0, 0, [])
    behind = min(known, key=lambda position: position.version)
    reader = next(r for r, front in zip(sorted(readers), fronts, strict=True) if front == str(behind))
    now = take_cut(warehouse, [member_of(warehouse, reader)])[source.id]
    rows = ChangeBuffer(warehouse.location_of(source), behind, now).rows(warehouse.engine)
    inserted, deleted, shown = _looked_at(rows, [c for c in rows.columns if c != WEIGHT], sample)
    waiting = {str(source.name): Volume(inserted, deleted)}
    return _inspection(board, source, waiting, 0, inserted, deleted, shown)


def _inspection(
    board: Board,
    relation: Relation,
    waiting: Mapping[str, Volume],
    rows_before: int,
    inserted: int,
    deleted: int,
    shown: Sequence[SampleRow],
) -> FuseInspection:
    fuse = board.fuses.get(relation.id)
    return FuseInspection(
        name=str(relation.name),
        state=(FuseState.ARMED if fuse is None else fuse.state).value,
        blow_reason=None if fuse is None else fuse.blow_reason,
        waiting=waiting,
        rows_before=rows_before,
        inserted=inserted,
        deleted=deleted,
        sample=shown,
        downstream=sorted(board.lineage.name(i) for i in board.lineage.downstream(relation.id)),
    )


def describe(inspection: FuseInspection) -> list[str]:
    """An inspection in words, line by line."""
    lines = [
        f"{inspection.name}: {inspection.state.lower()}"
        + (f", {inspection.blow_reason}" if inspection.blow_reason else "")
    ]
    for source, volume in inspection.waiting.items():
        lines.append(f"waiting at {source}: {volume.inserted} inserted, {volume.deleted} deleted")
    lines.append(
        f"of its {inspection.rows_before} rows {inspection.deleted} would go, and {inspection.inserted} would come"
    )
    lines += [f"{row.operation} {json.loads(row.row)}" for row in inspection.sample]
    if inspection.downstream:
        lines.append("downstream: " + ", ".join(inspection.downstream))
    return lines
