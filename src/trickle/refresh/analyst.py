"""What only Spark knows about a tree: the types of its columns, and whether the user's own functions repeat.

Spark is asked over empty tables, and only for its analysis: no job is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from sqlglot import exp

from trickle.delta.fixpoint import anchored
from trickle.delta.parts import summed_argument
from trickle.engine import Engine
from trickle.engine.query import is_refused, run_query
from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Expr,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Scan,
    Step,
    Values,
    Window,
    walk,
)
from trickle.operators.clock import NOW
from trickle.sql.clock import with_moments
from trickle.sql.lower import lower

_CHANCE = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Analyst:
    """Asks Spark about trees over tables of these schemas."""

    engine: Engine
    schemas: Mapping[str, StructType]

    def types_of(self, aggregate: Aggregate) -> Sequence[tuple[str, str]]:
        """The types of what sums and means are taken of, by the names of the calls."""
        wanted = [(c.name, argument) for c in aggregate.calls if (argument := summed_argument(c)) is not None]
        if not wanted:
            return ()
        arguments = Project(aggregate.input, tuple(Output(name, argument) for name, argument in wanted))
        return [(field.name, field.dataType.simpleString()) for field in self.schema_of(arguments).fields]

    def stored_types(self, plain: Operator, whole: Operator) -> Sequence[tuple[str, str]]:
        """Visible columns have the types that the query gives them, hidden ones their own."""
        known = {field.name: field.dataType.simpleString() for field in self.schema_of(plain).fields}
        found = self.schema_of(whole).fields
        return [(field.name, known.get(field.name, field.dataType.simpleString())) for field in found]

    def refuse_chance(self, tree: Operator) -> None:
        """Refuse the user's own functions that do not give the same value for the same row every time.

        Spark tells by refusing them in the condition of a join.
        """
        for node in walk(tree):
            if not node.inputs or isinstance(node, Aggregate | Window):
                continue
            for value in node.expressions:
                own = sorted(_called(value) - self.engine.own_functions())
                if own and is_refused(self.engine, *self._bound(_in_condition(node.inputs[0], value)), _CHANCE):
                    raise UnsupportedQuery(
                        f"function {own[0]} does not give the same value every time",
                        detail="it was registered as non-deterministic",
                        hint="use refresh_mode = 'FULL', or register a deterministic function",
                    )

    def schema_of(self, tree: Operator) -> StructType:
        """The columns of a tree."""
        return run_query(self.engine, *self._bound(tree)).schema

    def _bound(self, tree: Operator) -> tuple[list[DataFrame], Callable[[Sequence[str]], str]]:
        """Empty tables, and the text of a tree over them."""
        tables = sorted(self.schemas)
        frames = [self.engine.spark.createDataFrame([], self.schemas[table]) for table in tables]

        def render(names: Sequence[str]) -> str:
            by_table = dict(zip(tables, names, strict=True))

            def name_of(leaf: Scan | Step) -> str:
                assert isinstance(leaf, Scan)
                return by_table[leaf.table]

            return lower(with_moments(anchored(tree), {NOW: _SOME_TIME}), name_of)

        return frames, render


def _in_condition(rows: Operator, value: Expr) -> Operator:
    one = Values(("__trickle_one",), ((exp.Literal.number("1"),),))
    return Join(JoinKind.LEFT, rows, one, exp.Is(this=exp.paren(value.copy()), expression=exp.null()))


def _called(expression: Expr) -> set[str]:
    return {call.name.lower() for call in expression.find_all(exp.Anonymous)}
