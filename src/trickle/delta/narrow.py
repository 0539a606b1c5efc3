"""Of a relation, what can make certain rows (pure).

    wanted semi Q    becomes    wanted semi Q'

where the tables in Q' have only rows whose values appear among the wanted ones, in columns that reach the result of Q
unchanged. So that a big Q is not computed for a few wanted rows:

    wanted (a, b) of  SELECT p.a, e.dst FROM p JOIN e ON p.b = e.src
    reads             p semi wanted on a, e semi wanted on dst

Safe because a row of the result that is wanted has a wanted value in such a column, and so have the rows it is made of:
filters, projections, generators, inner joins, unions, and the left sides of the other joins pass rows on one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trickle.delta.weighted import keys_of, restricted
from trickle.operators import Filter, Generate, Join, JoinKind, Operator, Project, UnionAll, Values


def narrowed(tree: Operator, wanted: Operator) -> Operator:
    """A relation that has the same rows among those wanted; its columns answer to theirs by place."""
    return _narrowed(tree, dict(zip(tree.columns, wanted.columns, strict=True)), wanted)


def _narrowed(tree: Operator, values: Mapping[str, str], wanted: Operator) -> Operator:
    """``values`` has the wanted column of each column whose values must appear there."""
    match tree:
        case Filter() | Generate():
            return replace(tree, input=_narrowed(tree.input, values, wanted))
        case Project():
            below = {
                output.value.name: values[output.name]
                for output in tree.outputs
                if output.is_plain and output.name in values
            }
            return replace(tree, input=_narrowed(tree.input, below, wanted))
        case UnionAll():
            return UnionAll(tuple(_narrowed(part, values, wanted) for part in tree.parts))
        case Join():
            right = _narrowed(tree.right, values, wanted) if tree.kind is JoinKind.INNER else tree.right
            return replace(tree, left=_narrowed(tree.left, values, wanted), right=right)
        case Values():
            return tree
        case _:
            keys = [name for name in tree.columns if name in values]
            return restricted(tree, keys, keys_of(wanted, [values[key] for key in keys])) if keys else tree
