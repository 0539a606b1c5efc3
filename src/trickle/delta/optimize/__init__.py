"""Rewrites of plans that change their cost and not their meaning; each can be left out.

Plain functions from plans to plans, in one ordered tuple. Two are not among them, as they need to be told about rows:
what did not change (``optimize/prune.py``), and where no NULL is (``optimize/nulls.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from trickle.delta.optimize.join_order import order_joins
from trickle.delta.optimize.push import push_keys
from trickle.delta.optimize.restrict import restrict_right
from trickle.delta.optimize.share import share
from trickle.delta.plan import Plan
from trickle.operators import Operator

__all__ = ["REWRITES", "Rewrite", "optimized"]

Rewrite = Callable[[Plan], Plan]


def optimized(plan: Plan, rewrites: Sequence[Rewrite] | None = None) -> Plan:
    """The plan, rewritten by all rewrites or by those given."""
    for rewrite in REWRITES if rewrites is None else rewrites:
        plan = rewrite(plan)
    return plan


def _in_each_tree(change: Callable[[Operator], Operator]) -> Rewrite:
    def rewrite(plan: Plan) -> Plan:
        steps = tuple(replace(step, tree=change(step.tree)) for step in plan.steps)
        return replace(plan, steps=steps, result=change(plan.result))

    return rewrite


REWRITES: tuple[Rewrite, ...] = (
    _in_each_tree(push_keys),
    _in_each_tree(order_joins),
    _in_each_tree(restrict_right),
    share,
)
