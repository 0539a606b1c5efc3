"""What is small, costly and used more than once becomes a step of its own.

A part of a plan that grows with the change only, and reads a table to be computed, is computed once when several parts
of the plan have it in common. The largest such part is taken out first, and the search begins anew: a step may share
parts with other steps. Safe because a step stands for its rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from trickle.delta.optimize.join_order import is_small
from trickle.delta.plan import Plan, PlanStep
from trickle.operators import Face, Operator, Scan, walk


def share(plan: Plan) -> Plan:
    """The plan with its common parts as steps."""
    taken = 0
    while (common := _largest_common(plan)) is not None:
        taken += 1
        plan = _with_step(plan, PlanStep(f"shared_{taken}", common))
    return plan


def _largest_common(plan: Plan) -> Operator | None:
    counts: Counter[Operator] = Counter()
    sizes: dict[Operator, int] = {}
    for tree in (*(step.tree for step in plan.steps), plan.result):
        for node in walk(tree):
            if node.inputs and _is_costly(node) and is_small(node):
                counts[node] += 1
                sizes.setdefault(node, sum(1 for _ in walk(node)))
    wholes = {step.tree for step in plan.steps}
    common = [node for node, count in counts.items() if count > 1 and node not in wholes]
    return max(common, key=lambda node: sizes[node], default=None)


def _is_costly(tree: Operator) -> bool:
    """Whether a table has to be read; changes and steps are at hand."""
    return any(isinstance(node, Scan) and node.face is not Face.CHANGE for node in walk(tree))


def _with_step(plan: Plan, step: PlanStep) -> Plan:
    """The plan with a part replaced by a step, which comes before its first use."""
    reference = step.reference()

    def without(tree: Operator) -> Operator:
        if tree == step.tree:
            return reference
        inputs = [without(child) for child in tree.inputs]
        return tree.with_inputs(inputs) if any(a is not b for a, b in zip(inputs, tree.inputs, strict=True)) else tree

    steps: list[PlanStep] = []
    placed = False
    for one in plan.steps:
        tree = without(one.tree)
        if tree is not one.tree and not placed:
            steps.append(step)
            placed = True
        steps.append(replace(one, tree=tree))
    if not placed:
        steps.append(step)
    return replace(plan, steps=tuple(steps), result=without(plan.result))
