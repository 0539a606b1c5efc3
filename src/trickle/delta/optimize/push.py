"""A small set of keys restricts a relation where its rows come from, not after they were made.

Where and why it may: ``sql/rewrites/semi.py``.
"""

from __future__ import annotations

from trickle.delta.optimize.join_order import is_small
from trickle.operators import Join, JoinKind, Operator
from trickle.sql.rewrites.semi import semi_joined


def push_keys(tree: Operator) -> Operator:
    """The tree with its restrictions by small sets of keys as deep as they go."""
    if isinstance(tree, Join) and tree.kind is JoinKind.SEMI and tree.condition is not None and is_small(tree.right):
        return semi_joined(push_keys(tree.left), push_keys(tree.right), tree.condition, small="right")
    inputs = [push_keys(child) for child in tree.inputs]
    return tree.with_inputs(inputs) if inputs else tree
