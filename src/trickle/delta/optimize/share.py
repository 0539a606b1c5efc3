"""What is small, costly and used more than once becomes a step of its own.

A part of a plan that grows with the change only, and reads a table to be computed, is computed once when several parts
of the plan have it in common. Of nested parts the largest is taken; what is inside of it is used once, by its step.
Safe because a step stands for its rows.

Restrictions repeat their small side (``optimize/restrict.py``), one inside of the other: written out, a plan of some
hundred operators can have millions. So equal parts are found from the leaves up, each operator is looked at once, and
the plan that leaves here is written out no larger than it is.
"""

from __future__ import annotations

from dataclasses import replace

from trickle.delta.optimize.join_order import is_small
from trickle.delta.plan import Plan, PlanStep
from trickle.operators import Face, Operator, Scan


def share(plan: Plan) -> Plan:
    """The plan with its common parts as steps."""
    parts = _Parts()
    roots = [parts.number(tree) for tree in (*(step.tree for step in plan.steps), plan.result)]
    common = parts.common(roots)
    steps: list[PlanStep] = []
    made: dict[int, Operator] = {}
    taken = 0

    def without(number: int) -> Operator:
        """A part with its common parts as references; their steps come before it."""
        nonlocal taken
        if number not in made:
            node = parts.nodes[number]
            inputs = [without(child) for child in parts.inputs[number]]
            tree = node if all(a is b for a, b in zip(inputs, node.inputs, strict=True)) else node.with_inputs(inputs)
            if number in common:
                taken += 1
                steps.append(PlanStep(f"shared_{taken}", tree))
                tree = steps[-1].reference()
            made[number] = tree
        return made[number]

    for step, root in zip(plan.steps, roots, strict=False):
        tree = without(root)
        steps.append(replace(step, tree=tree))
    result = without(roots[-1])
    return replace(plan, steps=tuple(steps), result=result)


class _Parts:
    """The different parts of a plan, numbered from the leaves up."""

    def __init__(self) -> None:
        self.nodes: list[Operator] = []
        self.inputs: list[tuple[int, ...]] = []
        self._small: list[bool] = []
        self._costly: list[bool] = []
        self._numbers: dict[object, int] = {}
        self._seen: dict[int, tuple[Operator, int]] = {}
        """By identity, with the operator itself, so that no other can come to have it."""

    def number(self, tree: Operator) -> int:
        """The number of a part; equal parts have the same."""
        if (seen := self._seen.get(id(tree))) is not None:
            return seen[1]
        inputs = tuple(self.number(child) for child in tree.inputs)
        number = self._numbers.setdefault((type(tree), tree.own, inputs), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(tree)
            self.inputs.append(inputs)
            self._small.append(is_small(tree, lambda child: self._small[self.number(child)]))
            reads = isinstance(tree, Scan) and tree.face is not Face.CHANGE
            self._costly.append(reads or any(self._costly[child] for child in inputs))
        self._seen[id(tree)] = (tree, number)
        return number

    def common(self, roots: list[int]) -> set[int]:
        """The parts that are worth a step: several others use them, and none of these is itself inside of a step."""
        uses = [roots.count(number) for number in range(len(self.nodes))]
        found: set[int] = set()
        for number in reversed(range(len(self.nodes))):
            if uses[number] > 1 and self._is_worth_a_step(number) and number not in roots[:-1]:
                found.add(number)
            passed_on = 1 if number in found else min(uses[number], 2)
            for child in self.inputs[number]:
                uses[child] += passed_on
        return found

    def _is_worth_a_step(self, number: int) -> bool:
        """Whether it is small, and a table has to be read for it; changes and steps are at hand."""
        return bool(self.inputs[number]) and self._small[number] and self._costly[number]
