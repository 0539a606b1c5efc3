"""Rewrites of operator trees: from what the builder makes of a query to what the engine differentiates (pure).

Each rule is a function from a tree to a tree that means the same, alone in its module, whose head argues why. They run
in the order of ``rules``: filters are pushed again after left joins have become inner ones, for then more can pass, and
after semi joins were added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import MappingProxyType

from trickle.operators import Operator
from trickle.sql.rewrites.ask import ask
from trickle.sql.rewrites.connect import connect
from trickle.sql.rewrites.convert import convert
from trickle.sql.rewrites.copy import fresh_copy
from trickle.sql.rewrites.decorrelate import decorrelate
from trickle.sql.rewrites.factor import factor
from trickle.sql.rewrites.kinds import Schemas
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.null_aware import null_aware
from trickle.sql.rewrites.prune import prune
from trickle.sql.rewrites.push_filters import push_filters
from trickle.sql.rewrites.simplify import simplify
from trickle.sql.rewrites.strengthen import strengthen

Rule = Callable[[Operator], Operator]

__all__ = ["Names", "Rule", "Schemas", "fresh_copy", "rewrite", "rules"]


def rules(schemas: Schemas) -> tuple[Rule, ...]:
    """The rules in their order."""
    return (
        _with(convert, schemas),
        factor,
        _with(decorrelate, schemas),
        null_aware,
        simplify,
        push_filters,
        strengthen,
        push_filters,
        connect,
        _with(ask, schemas),
        push_filters,
        prune,
        simplify,
    )


def _with(rule: Callable[[Operator, Schemas], Operator], schemas: Schemas) -> Rule:
    return wraps(rule)(lambda tree: rule(tree, schemas))


def rewrite(tree: Operator, schemas: Schemas = MappingProxyType({})) -> Operator:
    """The same relation without subqueries, in a form that is good to differentiate.

    Where types are not known, less is done.
    """
    for rule in rules(schemas):
        tree = rule(tree)
    return tree
