"""Equal subtrees become one object, so that each is computed under one name.

A delta plan mentions the same relation again and again, often as the same Python object. Every node is visited once,
and its key holds the identities of its inputs instead of the inputs: the cost is linear in the distinct nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import fields

from trickle.operators import Operator


class Shared:
    """A tree in which equal subtrees are the same object."""

    def __init__(self, tree: Operator) -> None:
        self._known: dict[Hashable, Operator] = {}
        self._seen: dict[int, Operator] = {}
        self.root = self._one(tree)
        self._uses = Counter(id(child) for node in self._known.values() for child in node.inputs)

    @property
    def nodes(self) -> list[Operator]:
        """The distinct nodes, inputs before what is computed from them."""
        return list(self._known.values())

    def is_shared(self, node: Operator) -> bool:
        """Whether a node of this tree is read in more than one place."""
        return self._uses[id(node)] > 1

    def _one(self, node: Operator) -> Operator:
        found = self._seen.get(id(node))
        if found is None:
            inputs = [self._one(child) for child in node.inputs]
            if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
                node_of_ours = node.with_inputs(inputs)
            else:
                node_of_ours = node
            found = self._known.setdefault(_key(node_of_ours), node_of_ours)
            self._seen[id(node)] = found
        return found


def _key(node: Operator) -> Hashable:
    return (type(node), *(_part(getattr(node, field.name)) for field in fields(node)))


def _part(value: object) -> object:
    if isinstance(value, Operator):
        return id(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Operator):
        return tuple(map(id, value))
    return value
