"""Queries that are monotone in some of the tables they read: more rows there never make fewer rows here (pure).

With A <= B for multisets when every row is in B at least as often as in A, these are monotone:

    filter, project, generate      in their input: they look at one row at a time
    union all, inner join          in all inputs
    semi join                      in both: a row of the left stays when the right gets more rows
    left join, anti join           in the left only: a row that comes on the right takes rows away
    distinct                       in its input
    recursion                      in what its parts are monotone in, when its step is linear in the recursion. The step
                                   sees the rows of one round only, and with more rows some are found a round earlier

Aggregates, window functions and LIMIT are not. EXCEPT, INTERSECT and scalar subqueries are written with aggregates, NOT
IN with anti joins.

At the level of sets all of them but the recursion also distribute over the union of rows at one place where a table is
read. So what new rows of a table add to a set is found by reading only them there, at one place after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlglot import exp

from trickle.delta.linear import Nonlinear, linear_step
from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    Scan,
    TopK,
    UnionAll,
    Window,
    col,
    scans_of,
    transformed,
)
from trickle.sql.build.calls import function_hint

Rows = Callable[[Scan], Operator]
"""What stands for a table where it is read."""
Latest = Callable[[Scan], Operator | None]
"""The latest rows of a table where it is read; None when there are none."""


@dataclass(frozen=True)
class Obstacle:
    """An operator that is not monotone in a table."""

    operator: str
    table: str

    def __str__(self) -> str:
        return f"{self.operator} over {self.table}"


def obstacle(tree: Operator, tables: Collection[str]) -> Obstacle | None:
    """The first operator, from the root down, that is not monotone in one of the tables; None when all are."""
    below = _first_of(tree, tables)
    if below is None:
        return None
    match tree:
        case Join(kind=JoinKind.LEFT | JoinKind.ANTI) if right := _first_of(tree.right, tables):
            return Obstacle(f"{tree.kind.upper()} JOIN with the right side", right)
        case Aggregate() if tree.calls:
            return Obstacle(f"aggregate {_called(tree.calls)}", below)
        case Window():
            return Obstacle(f"window function {_called(tree.calls)}", below)
        case TopK():
            return Obstacle("LIMIT", below)
        case Recursion() if isinstance(step := linear_step(tree), Nonlinear):
            return Obstacle(f"recursion {tree.name}, whose step has {step.reason},", below)
        case Scan() | Filter() | Project() | Generate() | UnionAll() | Join() | Aggregate() | Recursion():
            found = (obstacle(child, tables) for child in tree.inputs)
            return next((one for one in found if one is not None), None)
        case _:
            return Obstacle(type(tree).__name__.lower(), below)


def set_rows(tree: Operator) -> Operator | None:
    """For a tree whose rows all differ, a tree with the same rows in any number of copies; None for others.

    That is DISTINCT and UNION, with columns renamed or repeated afterwards.
    """
    outputs = tree.outputs if isinstance(tree, Project) else Output.keep(tree.columns)
    groups = tree.input if isinstance(tree, Project) else tree
    if not isinstance(groups, Aggregate) or groups.calls:
        return None
    kept = {output.value.name for output in outputs if output.is_plain}
    if not all(output.is_plain for output in outputs) or kept != set(groups.keys):
        return None
    return Project(groups.input, tuple(Output(output.name, col(output.value.name)) for output in outputs))


def whole(tree: Operator, tables: Collection[str], rows: Rows) -> Operator:
    """The tree over other rows in place of the tables."""

    def bound(node: Operator) -> Operator:
        return rows(node) if isinstance(node, Scan) and node.table in tables else node

    return transformed(tree, bound)


def increments(tree: Operator, tables: Collection[str], rows: Rows, latest: Latest) -> list[Operator]:
    """Trees that together make, as a set, at least what the latest rows of the tables add to the tree.

    The tree is monotone in the tables; ``rows`` stands for all rows of a table, the latest among them.
    """
    match tree:
        case Scan():
            found = latest(tree) if tree.table in tables else None
            return [] if found is None else [found]
        case Recursion():
            is_touched = any(latest(scan) is not None for scan in scans_of(tree) if scan.table in tables)
            return [whole(tree, tables, rows)] if is_touched else []
        case UnionAll():
            return [one for part in tree.parts for one in increments(part, tables, rows, latest)]
        case _:
            everything = [whole(child, tables, rows) for child in tree.inputs]
            return [
                tree.with_inputs([*everything[:place], one, *everything[place + 1 :]])
                for place, child in enumerate(tree.inputs)
                for one in increments(child, tables, rows, latest)
            ]


def _first_of(tree: Operator, tables: Collection[str]) -> str | None:
    return next((scan.table for scan in scans_of(tree) if scan.table in tables), None)


def _called(calls: Collection[Output]) -> str:
    values = (output.value.this if isinstance(output.value, exp.Window) else output.value for output in calls)
    names = map(function_hint, values)
    return ", ".join(dict.fromkeys(names))
