"""Recursive common table expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trickle.operators.node import InvalidTree, Operator, check_distinct
from trickle.operators.scan import Leaf


@dataclass(frozen=True)
class RecursiveRef(Leaf):
    """Inside a recursion's step: the rows that the step before made."""

    name: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_distinct(self.names, f"reference to {self.name}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@dataclass(frozen=True)
class Recursion(Operator):
    """The rows of ``base``, and of ``step`` over them, again and again until nothing comes (or nothing new does).

    ``step`` holds one or more ``RecursiveRef`` of the same ``name``; their columns answer to ours by place.
    """

    name: str
    names: tuple[str, ...]
    base: Operator
    step: Operator
    distinct: bool

    def __post_init__(self) -> None:
        check_distinct(self.names, f"recursion {self.name}")
        if not len(self.names) == len(self.base.columns) == len(self.step.columns):
            raise InvalidTree(f"the parts of recursion {self.name} differ in columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.base, self.step)

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        base, step = inputs
        return replace(self, base=base, step=step)
