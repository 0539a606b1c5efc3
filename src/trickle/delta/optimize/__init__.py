"""Rewrites of plans that change their cost and not their meaning; each can be left out.

They are plain functions from trees to trees, in one ordered tuple. ``prune`` is not among them: it needs to be told
what did not change (``optimize/prune.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from trickle.delta.optimize.join_order import order_joins
from trickle.delta.plan import Plan
from trickle.operators import Operator

Rewrite = Callable[[Operator], Operator]

REWRITES: tuple[Rewrite, ...] = (order_joins,)

__all__ = ["REWRITES", "optimized"]


def optimized(plan: Plan, rewrites: Sequence[Rewrite] = REWRITES) -> Plan:
    """The plan with each of its trees rewritten."""

    def better(tree: Operator) -> Operator:
        for rewrite in rewrites:
            tree = rewrite(tree)
        return tree

    steps = tuple(replace(step, tree=better(step.tree)) for step in plan.steps)
    return replace(plan, steps=steps, result=better(plan.result))
