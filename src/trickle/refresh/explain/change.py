"""``explain_delta``: the plan of the change, stage after stage, as if every source had changed.

The plans are those of a refresh (``refresh/differential.py``), before it is known what is empty. As a tree, as SQL over
faces of tables (``orders (change)``), or as Spark's own plan: for that, changes and steps are single rows of NULLs, as
a small change would be held on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.names import TableName
from trickle.algebra.weights import WEIGHT
from trickle.delta.optimize import optimized
from trickle.delta.optimize.prune import prune_plan
from trickle.delta.plan import OWN, Plan
from trickle.delta.stages import Stage
from trickle.engine import spark_errors
from trickle.engine.query import run_query
from trickle.errors import InvalidOption, UserError
from trickle.lake.scan import pick
from trickle.lake.shape import relaxed
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.operators import Operator, Scan, Step, show
from trickle.refresh.compiled import Compiled
from trickle.refresh.execute import usable_state
from trickle.refresh.explain.opened import Opened, open_stream
from trickle.refresh.explain.words import Speller, named, table_name
from trickle.refresh.faces import Faces, Held, Table, change_columns
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
        case "tree" | "sql":
            written = show if wanted == "tree" else _sql
            for stage, plan in _plans(compiled):
                # What a plan calls its own table is the stage's.
                kept = table_name(stage.table, own)
                yield stage, [(title, written(named(tree, kept))) for title, tree in _trees(plan)]
        case "spark":
            yield from _by_spark(opened, compiled)
        case _:
            assert_never(wanted)


def _plans(compiled: Compiled) -> Iterator[tuple[Stage, Plan]]:
    for stage in compiled.stages:
        yield stage, optimized(prune_plan(stage.keeping.change(), ()))


def _trees(plan: Plan) -> list[tuple[str, Operator]]:
    return [*((f"step {step.name}", step.tree) for step in plan.steps), ("change", plan.result)]


def _sql(tree: Operator) -> str:
    def name_of(leaf: Scan | Step) -> str:
        match leaf:
            case Step():
                return f"step {leaf.name}"
            case Scan():
                return f"{leaf.table} ({leaf.face.value})"

    return lower(tree, name_of, pretty=True)


def _by_spark(opened: Opened, compiled: Compiled) -> Iterator[tuple[Stage, Sequence[tuple[str, str]]]]:
    engine = opened.task.warehouse.engine
    stored = _stored(opened, compiled)
    with closing(opened.faces()) as faces, engine.tuned(small=True):
        asking = _Asking(faces)
        plans = list(_plans(compiled))
        changes = change_columns([tree for _, plan in plans for _, tree in _trees(plan)])
        for stage, plan in plans:
            for table, columns in changes.items():
                asking.hold_change(table, columns)
            yield stage, asking.plans(plan, stored[stage.table])
            faces.tables[stage.table] = Table(stored[stage.table], stored[stage.table])


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


@dataclass(frozen=True)
class _Asking:
    """Asks Spark for the plans of one stage after the other."""

    faces: Faces

    def hold_change(self, table: str, columns: Sequence[str]) -> None:
        """A change of a table whose columns are known: a source, or a stage that came before."""
        if table in self.faces.tables and table not in self.faces.changes:
            fields = pick(self.faces.tables[table].new.schema, columns).fields
            self.faces.changes[table] = self._one_row(StructType([*fields, StructField(WEIGHT, LongType())]))

    def plans(self, plan: Plan, snapshot: Snapshot) -> list[tuple[str, str]]:
        faces = self.faces
        faces.tables[OWN] = Table(snapshot, snapshot)
        faces.steps.clear()
        found = []
        for step in plan.steps:
            frame = faces.run(step.tree)
            found.append((f"step {step.name}", self._physical(frame)))
            faces.steps[step.name] = self._one_row(frame.schema)
        return [*found, ("change", self._physical(faces.run(plan.result)))]

    def _one_row(self, schema: StructType) -> Held:
        shape = relaxed(schema)
        with spark_errors():
            return Held(self.faces.engine.spark.createDataFrame([(None,) * len(shape)], shape), 1)

    def _physical(self, frame: DataFrame) -> str:
        plan = run_query(self.faces.engine, [frame], lambda names: f"EXPLAIN SELECT * FROM `{names[0]}`")
        with spark_errors():
            return "\n".join(str(row[0]) for row in plan.collect())
