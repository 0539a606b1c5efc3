"""A refresh by changes: stage after stage, each from the changes of what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, FloatType, LongType, NullType, StringType, StructField

from trickle.algebra.weights import FILE, HIDDEN, ROW, WEIGHT
from trickle.delta.optimize.prune import is_nothing, prune
from trickle.delta.plan import OWN, Plan, stands_still
from trickle.delta.stages import Stage
from trickle.engine import Left
from trickle.lake.assign import conform
from trickle.lake.few import Few
from trickle.lake.local import summed
from trickle.lake.merge import merge_rows, merge_table
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import replace_rows
from trickle.lake.snapshot import Snapshot
from trickle.lake.staged import next_snapshot, staged_change, staged_locally
from trickle.operators import Operator
from trickle.refresh.faces import Faces, Planned, Table, change_columns
from trickle.refresh.texts import Known


@dataclass
class Kept:
    """What a refresh by changes prepared: for each stage's table what to commit, if anything."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    rows_read: dict[str, int] = field(default_factory=dict)


def keep(faces: Faces, stages: Sequence[Stage], stored: Mapping[str, Snapshot], unchanged: set[str]) -> Kept:
    """Prepare the change of every stage's table. ``unchanged`` are sources that stand where they stood."""
    kept = Kept()
    still = set(unchanged)
    wanted = change_columns(_trees(stage.change for stage in stages))
    for table, columns in wanted.items():
        if table in faces.tables and table not in still and faces.tables[table].change is not None:
            held = faces.hold_change(table, columns)
            kept.rows_read[table] = held.rows
            if not held.rows:
                still.add(table)
    for stage in stages:
        snapshot = stored[stage.table]
        faces.types = stage.types
        prepared = _keep_stage(faces, stage.plan(still), snapshot)
        if prepared is None or prepared.is_empty:
            still.add(stage.table)
            faces.tables[stage.table] = Table(snapshot, snapshot)
            continue
        kept.prepared[stage.table] = prepared
        if stage.table != OWN:
            change = partial(staged_change, faces.engine, snapshot, prepared)
            local = partial(staged_locally, faces.engine, snapshot, prepared)
            faces.tables[stage.table] = Table(snapshot, next_snapshot(snapshot, prepared), change, local)
            faces.hold_change(stage.table, wanted.get(stage.table, ()))
    return kept


def _trees(plans: Iterable[Plan]) -> list[Operator]:
    return [tree for plan in plans for tree in (*(step.tree for step in plan.steps), plan.result)]


def _keep_stage(faces: Faces, plan: Plan, snapshot: Snapshot) -> Prepared | None:
    faces.tables[OWN] = Table(snapshot, snapshot)
    faces.steps.clear()
    empty: list[str] = []
    for step in plan.steps:
        tree, found = faces.without_nulls(prune(step.tree, (), empty))
        held = None if is_nothing(tree) else faces.hold_step(tree, Known(step.tree).then(empty, found))
        if held is not None and held.rows:
            faces.steps[step.name] = held
            continue
        empty.append(step.name)
        if stands_still(empty):
            return None
    result, found = faces.without_nulls(prune(plan.result, (), empty))
    if is_nothing(result):
        return None
    planned = faces.planned(result, Known(plan.result).then(empty, found))
    few = faces.few(planned.load)
    made = Left.UNFIT if few is None else _on_driver(faces, few, planned, snapshot, located=plan.located)
    if isinstance(made, Prepared):
        return made
    if made is Left.MANY:
        few = None
    rows = planned.frame
    if plan.located:
        return replace_rows(faces.engine, snapshot, _located(rows, snapshot), few=few)
    return merge_rows(faces.engine, snapshot, conform(rows, snapshot.schema, beside=(WEIGHT,)), few=few)


_WEIGHT = StructField(WEIGHT, LongType())
_PLACES = {FILE: StringType(), ROW: LongType()}
_BESIDE = (_WEIGHT, *(StructField(name, kind) for name, kind in _PLACES.items()), StructField(HIDDEN, BooleanType()))


def _on_driver(faces: Faces, few: Few, planned: Planned, snapshot: Snapshot, *, located: bool) -> Prepared | Left:
    """The change of a table where its rows fit on the driver, in the types that the table has."""
    if located:
        rows = few.computed(planned.text, snapshot.schema, _BESIDE)
        return rows if isinstance(rows, Left) else replace_rows(faces.engine, snapshot, rows)
    if any(isinstance(field.dataType, FloatType | DoubleType) for field in snapshot.schema.fields):
        return Left.UNFIT
    rows = few.computed(planned.text, snapshot.schema, (_WEIGHT,))
    return rows if isinstance(rows, Left) else merge_table(faces.engine, snapshot, summed(rows))


def _located(rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    located = conform(rows, snapshot.schema, beside=(WEIGHT, FILE, ROW, HIDDEN))
    # Where no stored row is met, they are NULL without a type.
    untyped = [name for name in (FILE, ROW) if isinstance(located.schema[name].dataType, NullType)]
    return located.withColumns({name: F.col(name).cast(_PLACES[name]) for name in untyped}) if untyped else located
