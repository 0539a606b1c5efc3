"""Plans in parts that Spark or a reader can take one by one: steps, and each recursion as its start and its round.

A recursion is no single statement, and Spark would have to iterate it to know its rows. Here its start gives the
columns, and what uses it reads a step of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from trickle.delta.linear import with_previous
from trickle.delta.plan import Plan
from trickle.operators import Operator, Recursion, Step

RECURSION = "recursion "
"""Steps that stand for recursions are called this and their number, from 1."""


@dataclass(frozen=True)
class Part:
    """A tree without recursions. ``gives`` are the steps that hold its rows, with their columns by place."""

    title: str
    tree: Operator
    gives: tuple[tuple[str, tuple[str, ...]], ...] = ()


def parts_of(plan: Plan) -> list[Part]:
    """The parts of a plan, each after those that it uses."""
    apart = _Apart()
    for step in plan.steps:
        tree = apart.tree(step.tree)
        apart.parts.append(Part(f"step {step.name}", tree, ((step.name, tree.columns),)))
    apart.parts.append(Part("change", apart.tree(plan.result)))
    return apart.parts


class _Apart:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._known: dict[Recursion, str] = {}

    def tree(self, node: Operator) -> Operator:
        """The tree with its recursions as steps; their parts are noted."""
        if isinstance(node, Recursion):
            if node not in self._known:
                self._known[node] = f"{RECURSION}{len(self._known) + 1}"
                self._note(node, self._known[node])
            return _rows(self._known[node], node.names, node.names)
        inputs = [self.tree(child) for child in node.inputs]
        return node.with_inputs(inputs) if inputs else node

    def _note(self, node: Recursion, name: str) -> None:
        previous = f"{name}, round before"
        start = self.tree(node.base)
        self.parts.append(Part(f"{name}, start", start, ((name, node.names), (previous, node.names))))
        step = with_previous(node.step, node.name, partial(_rows, previous, node.names))
        self.parts.append(Part(f"{name}, each round", self.tree(step)))


def _rows(step: str, columns: tuple[str, ...], names: tuple[str, ...]) -> Operator:
    return Step(step, tuple(zip(columns, names, strict=True)))
