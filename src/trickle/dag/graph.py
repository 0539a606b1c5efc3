"""The dependency graph, as plain mappings from a node to the nodes it reads."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def path(reads: Mapping[Node, Collection[Node]], start: Node, goal: Node) -> list[Node] | None:
    """A way from ``start`` along its sources to ``goal``, both included; None when there is none.

    >>> path({"c": ["b"], "b": ["a"]}, "c", "a")
    ['c', 'b', 'a']
    """
    ways: dict[Node, Node | None] = {start: None}
    pending = [start]
    while pending:
        node = pending.pop()
        if node == goal:
            return _walk_back(ways, node)
        for source in reads.get(node, ()):
            if source not in ways:
                ways[source] = node
                pending.append(source)
    return None


def _walk_back(ways: Mapping[Node, Node | None], end: Node) -> list[Node]:
    walked = []
    node: Node | None = end
    while node is not None:
        walked.append(node)
        node = ways[node]
    return walked[::-1]


def closure(edges: Mapping[Node, Collection[Node]], start: Iterable[Node]) -> set[Node]:
    """Everything that can be reached from ``start``, without the starting nodes unless they are reached."""
    found: set[Node] = set()
    pending = list(start)
    while pending:
        for node in edges.get(pending.pop(), ()):
            if node not in found:
                found.add(node)
                pending.append(node)
    return found


def reverse(edges: Mapping[Node, Collection[Node]]) -> dict[Node, set[Node]]:
    """The same graph with every edge turned around."""
    turned: dict[Node, set[Node]] = {}
    for node, targets in edges.items():
        for target in targets:
            turned.setdefault(target, set()).add(node)
    return turned


def order(reads: Mapping[Node, Collection[Node]], nodes: Collection[Node]) -> list[Node]:
    """``nodes`` so that each comes after those it reads, directly or through others; a cycle comes in some order.

    >>> order({"c": ["b"], "b": ["a"]}, ["c", "a"])
    ['a', 'c']
    >>> order({"c": ["b"], "b": ["a"], "a": ["b"]}, ["c", "b", "a"])
    ['a', 'b', 'c']
    """
    placed: list[Node] = []
    entered: set[Node] = set()
    for root in nodes:
        walk = [] if root in entered else [(root, iter(reads.get(root, ())))]
        entered.add(root)
        while walk:
            node, sources = walk[-1]
            source = next((source for source in sources if source not in entered), None)
            if source is None:
                placed.append(node)
                walk.pop()
            else:
                entered.add(source)
                walk.append((source, iter(reads.get(source, ()))))
    wanted = set(nodes)
    return [node for node in placed if node in wanted]
