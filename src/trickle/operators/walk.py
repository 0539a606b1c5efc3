"""Going through trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trickle.operators.clock import NOW, NOW_OLD
from trickle.operators.expressions import Expr, Output, renamed
from trickle.operators.node import Operator
from trickle.operators.rowwise import Filter, Project
from trickle.operators.scan import Face, Scan


def walk(tree: Operator) -> Iterator[Operator]:
    """Every operator, the root first."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.inputs))


def transformed(tree: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """The tree with every operator replaced, from the leaves up."""
    inputs = [transformed(child, change) for child in tree.inputs]
    if any(new is not old for new, old in zip(inputs, tree.inputs, strict=True)):
        tree = tree.with_inputs(inputs)
    return change(tree)


def at_face(tree: Operator, face: Face) -> Operator:
    """The same relation with all its tables, and the clock, at one face."""
    now = {NOW: NOW_OLD} if face is Face.OLD else {NOW_OLD: NOW}

    def turned(node: Operator) -> Operator:
        match node:
            case Scan():
                return Scan(node.table, node.fields, face)
            case Filter() if node.used & now.keys():
                return replace(node, condition=renamed(node.condition, now))
            case Project() if node.used & now.keys():
                return replace(node, outputs=tuple(Output(o.name, renamed(o.value, now)) for o in node.outputs))
            case _:
                return node

    return transformed(tree, turned)


def scans_of(tree: Operator) -> list[Scan]:
    """The tables that a tree reads, from left to right, each as often as it is read."""
    return [node for node in walk(tree) if isinstance(node, Scan)]


def free_columns(tree: Operator) -> frozenset[str]:
    """The columns that a tree uses and does not have: references to the outside of a subquery."""
    found: set[str] = set()
    for node in walk(tree):
        known = {name for child in node.inputs for name in child.columns}
        found |= node.used - known
    # What one side of an apply uses of the other is not free in the whole.
    return frozenset(found - {name for node in walk(tree) for name in node.columns})


def expressions_of(tree: Operator) -> Iterator[Expr]:
    """Every expression in a tree."""
    for node in walk(tree):
        yield from node.expressions
