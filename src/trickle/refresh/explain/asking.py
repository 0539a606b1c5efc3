"""Asks Spark about trees without computing them: changes and steps are single rows of NULLs.

So would a small change be held on the driver: as rows that Spark knows nothing about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from trickle.algebra.weights import WEIGHT
from trickle.delta.plan import Plan
from trickle.engine import spark_errors
from trickle.engine.query import run_query
from trickle.engine.tuning import Load
from trickle.lake.scan import pick
from trickle.lake.shape import relaxed
from trickle.operators import Operator
from trickle.refresh.explain.parts import Part, parts_of
from trickle.refresh.faces import Faces, Held


@dataclass(frozen=True)
class Asking:
    """Questions about trees over the tables of ``faces``."""

    faces: Faces

    def hold_change(self, table: str, columns: Sequence[str]) -> None:
        """Let there be a change of a table."""
        fields = pick(self.faces.tables[table].new.schema, columns).fields
        self.faces.changes[table] = self._one_row(StructType([*fields, StructField(WEIGHT, LongType())]))

    def schema(self, tree: Operator) -> StructType:
        """The columns of a tree."""
        *_, (_, last, _) = self._frames(parts_of(Plan((), tree)))
        return last.schema

    def plans(self, plan: Plan) -> list[tuple[str, str]]:
        """Spark's plans for the parts of a plan."""
        return [(part.title, self._physical(frame, load)) for part, frame, load in self._frames(parts_of(plan))]

    def _frames(self, parts: Iterable[Part]) -> Iterator[tuple[Part, DataFrame, Load]]:
        self.faces.steps.clear()
        for part in parts:
            planned = self.faces.planned(part.tree)
            frame = planned.frame
            for step, columns in part.gives:
                named = zip(columns, frame.schema.fields, strict=True)
                self.faces.steps[step] = self._one_row(
                    StructType([StructField(column, field.dataType) for column, field in named])
                )
            yield part, frame, planned.load

    def _one_row(self, schema: StructType) -> Held:
        shape = relaxed(schema)
        with spark_errors():
            return Held(self.faces.engine.spark.createDataFrame([(None,) * len(shape)], shape), 1)

    def _physical(self, frame: DataFrame, load: Load) -> str:
        with spark_errors(), self.faces.engine.tuned(load):
            plan = run_query(self.faces.engine, [frame], lambda names: f"EXPLAIN SELECT * FROM `{names[0]}`")
            return "\n".join(str(row[0]) for row in plan.collect())
