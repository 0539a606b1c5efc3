"""What must hold of every tree that leaves the builder: each column that an operator names comes from its inputs.

Only inside of an apply's subquery may it come from the left of that apply. And no subquery is left in an expression.
"""

from __future__ import annotations

from trickle.errors import UnsupportedQuery
from trickle.operators import Apply, InvalidTree, Operator
from trickle.operators.walk import expressions_of
from trickle.sql.build.negations import has_subquery


def checked(tree: Operator) -> Operator:
    """The tree, if it holds together."""
    if any(map(has_subquery, expressions_of(tree))):
        raise UnsupportedQuery("a subquery stands where none is supported", hint="compute it in WHERE or SELECT")
    stack: list[tuple[Operator, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        node, outside = stack.pop()
        known = outside.union(*(child.columns for child in node.inputs))
        if missing := sorted(node.used - known):
            raise InvalidTree(f"{type(node).__name__} uses the column {missing[0]!r}, which its input does not have")
        for child in node.inputs:
            lends = isinstance(node, Apply) and child is node.right
            stack.append((child, outside.union(node.inputs[0].columns) if lends else outside))
    return tree
