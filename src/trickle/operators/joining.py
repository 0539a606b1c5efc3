"""Operators over two relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from trickle.operators.expressions import Expr
from trickle.operators.node import InvalidTree, Operator, check_distinct


class JoinKind(StrEnum):
    """All kinds of join that the algebra has: right, full and natural joins are written with these."""

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def keeps_right(self) -> bool:
        return self in (JoinKind.INNER, JoinKind.LEFT)


@dataclass(frozen=True)
class Join(Operator):
    """Rows of the left with rows of the right; of semi and anti joins, rows of the left only.

    ``condition`` None stands for TRUE. ``small`` says which input is known to be small: a hint, without meaning.
    """

    kind: JoinKind
    left: Operator
    right: Operator
    condition: Expr | None = None
    small: Literal["left", "right"] | None = None

    def __post_init__(self) -> None:
        check_distinct((*self.left.columns, *self.right.columns), f"{self.kind} join")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.left.columns, *self.right.columns) if self.kind.keeps_right else self.left.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        left, right = inputs
        return replace(self, left=left, right=right)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return () if self.condition is None else (self.condition,)


class ApplyKind(StrEnum):
    """What a subquery is used for."""

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    SCALAR = "scalar"


@dataclass(frozen=True)
class Apply(Operator):
    """A subquery, evaluated for each row of the left. It may use the left's columns: they are free in ``right``.

    Rewritten to joins before anything else sees it (``sql/rewrites/decorrelate.py``).

    inner, left   LATERAL: the left's row with each row of the subquery for which ``condition`` holds
    semi, anti    [NOT] EXISTS and [NOT] IN as conditions of WHERE: ``condition`` relates the two sides
    mark          ``output`` says whether ``condition`` holds for some row of the subquery: true, false, or NULL when
                  it is NULL for some row and true for none
    scalar        ``output`` is the value of the subquery's only column, NULL when it has no row
    """

    kind: ApplyKind
    left: Operator
    right: Operator
    condition: Expr | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        check_distinct((*self.left.columns, *self.right.columns), f"apply {self.kind}")
        if (self.output is not None) != (self.kind in (ApplyKind.MARK, ApplyKind.SCALAR)):
            raise InvalidTree(f"apply {self.kind} with output {self.output}")
        if self.kind is ApplyKind.SCALAR and len(self.right.columns) != 1:
            raise InvalidTree("a scalar subquery has one column")

    @property
    def columns(self) -> tuple[str, ...]:
        match self.kind:
            case ApplyKind.INNER | ApplyKind.LEFT:
                return (*self.left.columns, *self.right.columns)
            case ApplyKind.SEMI | ApplyKind.ANTI:
                return self.left.columns
            case ApplyKind.MARK | ApplyKind.SCALAR:
                assert self.output is not None
                return (*self.left.columns, self.output)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        left, right = inputs
        return replace(self, left=left, right=right)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return () if self.condition is None else (self.condition,)
