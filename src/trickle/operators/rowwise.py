"""Operators that look at one row at a time: linear, so weights pass through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trickle.operators.expressions import Expr, Output
from trickle.operators.node import InvalidTree, Operator, check_distinct


@dataclass(frozen=True)
class OverOne(Operator):
    """An operator over one relation."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        (only,) = inputs
        return replace(self, input=only)


@dataclass(frozen=True)
class Filter(OverOne):
    """The rows for which a condition is true (neither false nor NULL)."""

    input: Operator
    condition: Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.condition,)


@dataclass(frozen=True)
class Project(OverOne):
    """Computed columns."""

    input: Operator
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_distinct(self.columns, "project")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(output.value for output in self.outputs)


@dataclass(frozen=True)
class Generate(OverOne):
    """Each row with each of the rows that a generator (``explode``, ``inline``, ``stack``, ...) makes of it.

    With ``outer``, a row of which nothing is made stays, with NULLs.
    """

    input: Operator
    generator: Expr
    names: tuple[str, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        check_distinct(self.columns, "generate")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input.columns, *self.names)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.generator,)


@dataclass(frozen=True)
class UnionAll(Operator):
    """All rows of all inputs. Every input has the same columns, in the same order."""

    parts: tuple[Operator, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidTree("a union of nothing")
        if any(part.columns != self.parts[0].columns for part in self.parts):
            raise InvalidTree(f"a union of different columns: {[part.columns for part in self.parts]}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.parts[0].columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        return UnionAll(tuple(inputs))
