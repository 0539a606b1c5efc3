"""Rewrites of operator trees: from what the builder makes of a query to what the engine differentiates (pure).

Each rule is a function from a tree to a tree that means the same, alone in its module, whose head argues why. They run
in the order of ``RULES``: filters are pushed again after left joins have become inner ones, for then more can pass.
"""

from __future__ import annotations

from collections.abc import Callable

from trickle.operators import Operator
from trickle.sql.rewrites.connect import connect
from trickle.sql.rewrites.copy import fresh_copy
from trickle.sql.rewrites.decorrelate import decorrelate
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.null_aware import null_aware
from trickle.sql.rewrites.prune import prune
from trickle.sql.rewrites.push_filters import push_filters
from trickle.sql.rewrites.simplify import simplify
from trickle.sql.rewrites.strengthen import strengthen

Rule = Callable[[Operator], Operator]

RULES: tuple[Rule, ...] = (
    decorrelate,
    null_aware,
    simplify,
    push_filters,
    strengthen,
    push_filters,
    connect,
    prune,
    simplify,
)

__all__ = ["RULES", "Names", "Rule", "fresh_copy", "rewrite"]


def rewrite(tree: Operator) -> Operator:
    """The same relation without subqueries, in a form that is good to differentiate."""
    for rule in RULES:
        tree = rule(tree)
    return tree
