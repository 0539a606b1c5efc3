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
from trickle.engine.ddl import spelled
from trickle.engine.query import is_refused, run_query
from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    RecursiveRef,
    Scan,
    Step,
    TopK,
    UnionAll,
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

    def columns_of(self, tree: Operator) -> Sequence[tuple[str, str]]:
        """The columns of a tree with their types; none inside of a recursion, where the start says them."""
        told = self._told(tree)
        if all(name in told for name in tree.columns):
            return [(name, told[name]) for name in tree.columns]
        inside = {node.name for node in walk(tree) if isinstance(node, Recursion)}
        if any(node.name not in inside for node in walk(tree) if isinstance(node, RecursiveRef)):
            return ()
        return [(n, spelled(f.dataType)) for n, f in zip(tree.columns, self.schema_of(tree).fields, strict=True)]

    def _told(self, node: Operator) -> dict[str, str]:
        """The types of those columns that are handed on as tables have them: Spark need not be asked."""
        below = [self._told(child) for child in node.inputs]
        match node:
            case Scan():
                kinds = {field.name: field.dataType for field in self.schemas[node.table].fields}
                return {given: spelled(kinds[own]) for own, given in node.fields if own in kinds}
            case Project():
                columns = [(o.name, o.value.name) for o in node.outputs if isinstance(o.value, exp.Column)]
                return {name: below[0][own] for name, own in columns if own in below[0]}
            case Join() if node.kind.keeps_right:
                return below[0] | below[1]
            case Filter() | TopK() | Window() | Join():
                return below[0]
            case Aggregate():
                return {name: kind for name, kind in below[0].items() if name in node.keys}
            case UnionAll():
                return {name: kind for name, kind in below[0].items() if all(b.get(name) == kind for b in below)}
            case _:
                return {}

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
