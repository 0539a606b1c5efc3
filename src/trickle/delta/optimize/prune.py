"""Leave out what is empty.

A table that did not change has an empty change, and the same rows old and new; a step may turn out to be empty, and no
file of a table worth reading. What depends on an empty relation is often empty itself, or simpler:

    filter, project, generate, top-k, window, aggregate with keys    of nothing: nothing
    recursion                                                        that starts with nothing: nothing
    inner join, semi join                                            with nothing on a side: nothing
    anti join, left join                                             with nothing on the right: the left [with NULLs]
    union all                                                        without its empty parts

An aggregate without keys has a row even over nothing, so it stays. Safe because each line is an identity of multisets.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from trickle.delta.plan import Plan, PlanStep, stands_still
from trickle.operators import (
    Aggregate,
    Face,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    Scan,
    Step,
    TopK,
    UnionAll,
    Values,
    Window,
    col,
    transformed,
)


def prune(tree: Operator, unchanged: Collection[str] = (), empty_steps: Collection[str] = ()) -> Operator:
    """The same relation, given tables that did not change and steps without rows."""

    def simpler(node: Operator) -> Operator:
        match node:
            case Scan() if node.table in unchanged:
                # Where nothing changed, one state is read, so that equal parts can be shared.
                return nothing(node) if node.face is Face.CHANGE else replace(node, face=Face.NEW)
            case Scan() if node.files == ():
                return nothing(node)
            case Step() if node.name in empty_steps:
                return nothing(node)
            case _:
                return _without_empty(node)

    return transformed(tree, simpler)


def prune_plan(plan: Plan, unchanged: Collection[str]) -> Plan:
    """A plan without the steps and parts that are empty because tables did not change."""
    steps: list[PlanStep] = []
    empty: list[str] = []
    for step in plan.steps:
        tree = prune(step.tree, unchanged, empty)
        if is_nothing(tree):
            empty.append(step.name)
        else:
            steps.append(replace(step, tree=tree))
    if stands_still(empty):
        return replace(plan, steps=(), result=nothing(plan.result))
    return replace(plan, steps=tuple(steps), result=prune(plan.result, unchanged, empty))


def nothing(like: Operator) -> Values:
    """No rows, with the columns of a relation."""
    return Values(like.columns, ())


def is_nothing(tree: Operator) -> bool:
    """Whether a relation is known to be empty."""
    return isinstance(tree, Values) and not tree.rows


def _without_empty(node: Operator) -> Operator:
    match node:
        case Filter() | Project() | Generate() | TopK() | Window() if is_nothing(node.input):
            return nothing(node)
        case Aggregate() if node.keys and is_nothing(node.input):
            return nothing(node)
        case Recursion() if is_nothing(node.base):
            return nothing(node)
        case UnionAll():
            parts = tuple(part for part in node.parts if not is_nothing(part))
            if len(parts) == len(node.parts):
                return node
            if len(parts) > 1:
                return replace(node, parts=parts)
            return parts[0] if parts else nothing(node)
        case Join():
            return _join(node)
        case _:
            return node


def _join(node: Join) -> Operator:
    if is_nothing(node.left):
        return nothing(node)
    if not is_nothing(node.right):
        return node
    match node.kind:
        case JoinKind.INNER | JoinKind.SEMI:
            return nothing(node)
        case JoinKind.ANTI:
            return node.left
        case JoinKind.LEFT:
            lacking = set(node.right.columns)
            return Project(
                node.left,
                tuple(Output(name, exp.null() if name in lacking else col(name)) for name in node.columns),
            )
