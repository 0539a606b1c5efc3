"""``explain_delta``: the plan of the change, stage after stage, as if every source had changed.

The plans are those of a refresh (``refresh/differential.py``), before it is known what is empty. As a tree, as SQL over
faces of tables (``orders (change)``) and earlier steps, or as Spark's own plan (``explain/asking.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Literal, assert_never, get_args

from trickle.algebra.names import TableName
from trickle.delta.optimize import optimized
from trickle.delta.optimize.prune import prune_plan
from trickle.delta.plan import OWN, Plan
from trickle.delta.stages import Stage
from trickle.delta.typed import Types, typed_nulls
from trickle.errors import InvalidOption, UserError
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.operators import Operator, Scan, Step, show
from trickle.refresh.compiled import Compiled
from trickle.refresh.execute import usable_state
from trickle.refresh.explain.asking import Asking
from trickle.refresh.explain.opened import Opened, open_stream
from trickle.refresh.explain.parts import RECURSION, parts_of
from trickle.refresh.explain.words import Speller, named, table_name
from trickle.refresh.faces import Table, change_columns
from trickle.refresh.state import State, folder_of
from trickle.sql.lower import lower
from trickle.warehouse import Warehouse

Format = Literal["tree", "sql", "spark"]
FORMATS: tuple[Format, ...] = get_args(Format)


def explain_delta(warehouse: Warehouse, name: TableName, how: str = "tree") -> list[str]:
    """The plan of the change of a stream table, line by line."""
    wanted = _format(how)
    opened = open_stream(warehouse, name)
    compiled, own = opened.stages(), str(opened.member.name)
    speller = Speller(compiled.stages)
    lines: list[str] = []
    for stage, parts in _told(opened, compiled, wanted):
        lines.append(f"{table_name(stage.table, own)}, kept {speller.way(stage)}")
        for title, text in parts:
            lines.append(f"  {title}:")
            lines += [f"    {line}" for line in text.rstrip().splitlines()]
    return lines


def _format(how: str) -> Format:
    for known in FORMATS:
        if how.lower() == known:
            return known
    raise InvalidOption(f"no format {how!r}", hint="formats: " + ", ".join(FORMATS))


def _told(opened: Opened, compiled: Compiled, wanted: Format) -> Iterator[tuple[Stage, Sequence[tuple[str, str]]]]:
    own = str(opened.member.name)
    match wanted:
        case "tree":
            for stage, plan in _plans(compiled, own):
                yield (
                    stage,
                    [*((f"step {step.name}", show(step.tree)) for step in plan.steps), ("change", show(plan.result))],
                )
        case "sql":
            for stage, plan in _plans(compiled, own):
                yield stage, [(part.title, _sql(part.tree, stage.types)) for part in parts_of(plan)]
        case "spark":
            yield from _by_spark(opened, compiled)
        case _:
            assert_never(wanted)


def _plans(compiled: Compiled, own: str) -> Iterator[tuple[Stage, Plan]]:
    """The plans of the stages, with tables under the names that people know."""
    for stage in compiled.stages:
        plan = _plan(stage)
        # What a plan calls its own table is the stage's.
        kept = table_name(stage.table, own)
        steps = tuple(replace(step, tree=named(step.tree, kept)) for step in plan.steps)
        yield stage, replace(plan, steps=steps, result=named(plan.result, kept))


def _plan(stage: Stage) -> Plan:
    return optimized(prune_plan(stage.keeping.change(), ()))


def _sql(tree: Operator, types: Types) -> str:
    def name_of(leaf: Scan | Step) -> str:
        match leaf:
            case Step():
                return leaf.name if leaf.name.startswith(RECURSION) else f"step {leaf.name}"
            case Scan():
                return f"{leaf.table} ({leaf.face.value})"

    return lower(typed_nulls(tree, types), name_of, pretty=True)


def _by_spark(opened: Opened, compiled: Compiled) -> Iterator[tuple[Stage, Sequence[tuple[str, str]]]]:
    stored = _stored(opened, compiled)
    plans = [(stage, _plan(stage)) for stage in compiled.stages]
    trees = [tree for _, plan in plans for tree in (*(step.tree for step in plan.steps), plan.result)]
    changes = change_columns(trees)
    with closing(opened.faces()) as faces, opened.task.warehouse.engine.tuned("small"):
        asking = Asking(faces)
        for table in faces.tables:
            asking.hold_change(table, changes.get(table, ()))
        for stage, plan in plans:
            snapshot = stored[stage.table]
            faces.tables[OWN], faces.types = Table(snapshot, snapshot), stage.types
            yield stage, asking.plans(plan)
            faces.tables[stage.table] = Table(snapshot, snapshot)
            asking.hold_change(stage.table, changes.get(stage.table, ()))


def _stored(opened: Opened, compiled: Compiled) -> dict[str, Snapshot]:
    """The tables of the stages as they stand."""
    state = _state(opened, compiled)
    location = opened.task.warehouse.location_of(opened.stream.relation)
    found = {OWN: open_snapshot(location, opened.stream.version)}
    for stage in compiled.inner:
        folder = folder_of(compiled.signature, stage)
        found[stage.table] = open_snapshot(location.child(*folder.split("/")), state.tables[folder])
    return found


def _state(opened: Opened, compiled: Compiled) -> State:
    state = usable_state(opened.stream, compiled)
    if state is None:
        raise UserError(
            f"what {opened.member.name} stores cannot be changed by changes yet: its next refresh computes it in full",
            hint=f"REFRESH STREAM TABLE {opened.member.name}, or format => 'sql'",
        )
    return state
