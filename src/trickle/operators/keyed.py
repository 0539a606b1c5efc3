"""Operators that look at the rows of a key together: groups, partitions, the first few."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from trickle.operators.expressions import Expr, Output
from trickle.operators.node import InvalidTree, Operator, check_distinct, check_known
from trickle.operators.rowwise import OverOne


@dataclass(frozen=True)
class Aggregate(OverOne):
    """One row for each group: the keys, and calls of aggregate functions.

    NULL is a key like any other. Without keys there is one group, also over no rows. Without calls the groups
    themselves are the result: DISTINCT. A call's value is the aggregate function itself (perhaps inside
    ``exp.Filter``) and nothing around it.
    """

    input: Operator
    keys: tuple[str, ...]
    calls: tuple[Output, ...] = ()

    def __post_init__(self) -> None:
        check_distinct(self.columns, "aggregate")
        check_known(self.keys, self.input.columns, "aggregate")
        if not self.columns:
            raise InvalidTree("an aggregate without keys and calls")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *(call.name for call in self.calls))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(call.value for call in self.calls)

    @property
    def used(self) -> frozenset[str]:
        return super().used | frozenset(self.keys)


@dataclass(frozen=True)
class Window(OverOne):
    """Each row with values of window functions. All calls share the partition; each is a whole ``exp.Window``."""

    input: Operator
    partition: tuple[str, ...]
    calls: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_distinct(self.columns, "window")
        check_known(self.partition, self.input.columns, "window")
        for call in self.calls:
            if not isinstance(call.value, exp.Window):
                raise InvalidTree(f"{call.name} is no window function")
            found = tuple(key.name for key in call.value.args.get("partition_by") or ())
            if found != self.partition:
                raise InvalidTree(f"{call.name} is partitioned by {found}, not {self.partition}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input.columns, *(call.name for call in self.calls))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(call.value for call in self.calls)

    @property
    def used(self) -> frozenset[str]:
        return super().used | frozenset(self.partition)


@dataclass(frozen=True)
class WindowOrder:
    """One term of an order: a column, its direction, and where NULL goes."""

    name: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class TopK(OverOne):
    """The first rows in an order, after ``offset`` of them. The order is total: it names enough columns (or all).

    Without ``limit``: all after the offset.
    """

    input: Operator
    order: tuple[WindowOrder, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        check_known((term.name for term in self.order), self.input.columns, "top-k")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def used(self) -> frozenset[str]:
        return frozenset(term.name for term in self.order)
