"""Steps of recursions that are linear in the rows of the step before (pure).

A step T is linear when T(A + B) = T(A) + T(B) for multisets A and B, and T(nothing) = nothing:

    filter, project, generate              of the recursion
    union all                              when every part is over the recursion
    inner join                             when one side is
    left, semi, anti join                  when only the left side is

In a UNION the result is a set, and copies that a step makes do not matter. So two more are made linear:

    distinct                               becomes a projection
    semi join, the recursion on the right  becomes an inner join and a projection

Anything else looks at several rows of the recursion at once: an aggregate, a window function, a join of the recursion
with itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
    RecursiveRef,
    UnionAll,
)


@dataclass(frozen=True)
class Nonlinear:
    """Why a step is not linear."""

    reason: str


def refers(tree: Operator, name: str) -> bool:
    """Whether a relation is computed from what the step before of this recursion made."""
    match tree:
        case RecursiveRef():
            return tree.name == name
        case Recursion() if tree.name == name:
            # Inside, the name means the inner recursion.
            return refers(tree.base, name)
        case _:
            return any(refers(child, name) for child in tree.inputs)


def with_previous(tree: Operator, name: str, rows: Callable[[tuple[str, ...]], Operator]) -> Operator:
    """The tree with references to a recursion replaced by relations, which are made for the columns wanted."""
    match tree:
        case RecursiveRef() if tree.name == name:
            return rows(tree.names)
        case Recursion() if tree.name == name:
            return replace(tree, base=with_previous(tree.base, name, rows))
        case _:
            inputs = [with_previous(child, name, rows) for child in tree.inputs]
            return tree.with_inputs(inputs) if inputs else tree


def linear_step(recursion: Recursion) -> Operator | Nonlinear:
    """The step in a form that is linear, or why there is none."""
    if not refers(recursion.step, recursion.name):
        return Nonlinear("a step that does not refer to it")
    return _linear(recursion.step, recursion.name, as_set=recursion.distinct)


def _linear(tree: Operator, name: str, *, as_set: bool) -> Operator | Nonlinear:
    """The tree, which refers to the recursion, in a form that is linear in it."""
    match tree:
        case RecursiveRef():
            return tree
        case Filter() | Project() | Generate():
            return _over(tree, _linear(tree.input, name, as_set=as_set))
        case UnionAll():
            parts = []
            for part in tree.parts:
                if not refers(part, name):
                    # It would make rows of nothing, once there is anything.
                    return Nonlinear("a part that does not refer to it")
                made = _linear(part, name, as_set=as_set)
                if isinstance(made, Nonlinear):
                    return made
                parts.append(made)
            return UnionAll(tuple(parts))
        case Join():
            return _join(tree, name, as_set=as_set)
        case Aggregate() if as_set and not tree.calls:
            below = _linear(tree.input, name, as_set=as_set)
            return below if isinstance(below, Nonlinear) else Project(below, Output.keep(tree.keys))
        case Recursion():
            return Nonlinear("another recursion over it")
        case Aggregate():
            return Nonlinear("DISTINCT over it" if not tree.calls else "an aggregate over it")
        case _:
            return Nonlinear(f"{_SPOKEN.get(type(tree).__name__, type(tree).__name__)} over it")


_SPOKEN = {"Window": "a window function", "TopK": "LIMIT"}


def _over(tree: Operator, below: Operator | Nonlinear) -> Operator | Nonlinear:
    return below if isinstance(below, Nonlinear) else tree.with_inputs([below])


def _join(tree: Join, name: str, *, as_set: bool) -> Operator | Nonlinear:
    if not refers(tree.right, name):
        left = _linear(tree.left, name, as_set=as_set)
        return left if isinstance(left, Nonlinear) else replace(tree, left=left)
    if refers(tree.left, name):
        return Nonlinear("a join of it with itself")
    if tree.kind is not JoinKind.INNER and not (as_set and tree.kind is JoinKind.SEMI):
        article = "an" if tree.kind is JoinKind.ANTI else "a"
        return Nonlinear(f"{article} {tree.kind.upper()} JOIN with it on the right")
    right = _linear(tree.right, name, as_set=as_set)
    if isinstance(right, Nonlinear):
        return right
    joined = replace(tree, kind=JoinKind.INNER, right=right)
    return joined if tree.kind is JoinKind.INNER else Project(joined, Output.keep(tree.columns))
