"""Leaves: tables at one of their faces, steps that were computed before, rows that are spelled out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.operators.expressions import Expr
from trickle.operators.node import InvalidTree, Operator, check_distinct


class Face(StrEnum):
    """Which state of a table a scan reads.

    ``change`` has the rows that differ between ``old`` and ``new``, netted, with a weight of +1 or -1 each (a row that
    was inserted twice is there twice).
    """

    OLD = "old"
    NEW = "new"
    CHANGE = "change"


class Leaf(Operator):
    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def with_inputs(self, inputs: Sequence[Operator]) -> Operator:
        if inputs:
            raise InvalidTree(f"{type(self).__name__} has no inputs")
        return self


@dataclass(frozen=True)
class Scan(Leaf):
    """A table. ``fields`` are pairs of the table's column and the name that it has in the tree.

    At the face ``change`` the weight is a column more; with ``located`` the place of every row is two columns more.
    ``files`` are those that have to be read, where that was found out, and ``rows`` about how many rows of them; None
    for all.
    """

    table: str
    fields: tuple[tuple[str, str], ...]
    face: Face = Face.NEW
    located: bool = False
    files: tuple[str, ...] | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        check_distinct(self.columns, f"scan of {self.table}")
        if self.located and self.face is Face.CHANGE:
            raise InvalidTree("a change lies in no file")

    @property
    def columns(self) -> tuple[str, ...]:
        names = tuple(name for _, name in self.fields)
        if self.face is Face.CHANGE:
            return (*names, WEIGHT)
        return (*names, FILE, ROW) if self.located else names


@dataclass(frozen=True)
class Step(Leaf):
    """The result of an earlier step of the plan, under its name. ``names`` are its columns, renamed by place."""

    name: str
    fields: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        check_distinct(self.columns, f"step {self.name}")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.fields)


@dataclass(frozen=True)
class Values(Leaf):
    """Rows of expressions that name no column."""

    names: tuple[str, ...]
    rows: tuple[tuple[Expr, ...], ...]

    def __post_init__(self) -> None:
        check_distinct(self.names, "VALUES")
        if any(len(row) != len(self.names) for row in self.rows):
            raise InvalidTree("rows of VALUES differ in length")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(value for row in self.rows for value in row)
