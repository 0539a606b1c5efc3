"""Strongly connected components: the nodes that read each other, directly or through others.

Tarjan's algorithm, with a stack of its own because a chain of stream tables may be deeper than Python's. ``graphlib``
stops at the first cycle and a graph library would be a dependency for forty lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from trickle.dag.graph import Node, path


def components(reads: Mapping[Node, Collection[Node]]) -> list[list[Node]]:
    """All nodes that have sources, each in one component, sources before their readers.

    >>> components({"a": ["b"], "b": ["a"], "c": ["b"]})
    [['b', 'a'], ['c']]
    """
    number: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    open_nodes: dict[Node, None] = {}
    found: list[list[Node]] = []
    for root in reads:
        if root in number:
            continue
        walk = [_enter(root, reads, number, lowest, open_nodes)]
        while walk:
            node, sources = walk[-1]
            source = next((s for s in sources if s in reads and (s not in number or s in open_nodes)), None)
            if source is None:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == number[node]:
                    found.append(_close(node, open_nodes))
            elif source in number:
                lowest[node] = min(lowest[node], number[source])
            else:
                walk.append(_enter(source, reads, number, lowest, open_nodes))
    return found


def _enter(
    node: Node,
    reads: Mapping[Node, Collection[Node]],
    number: dict[Node, int],
    lowest: dict[Node, int],
    open_nodes: dict[Node, None],
) -> tuple[Node, Iterator[Node]]:
    number[node] = lowest[node] = len(number)
    open_nodes[node] = None
    return node, iter(reads[node])


def _close(node: Node, open_nodes: dict[Node, None]) -> list[Node]:
    """The nodes that were opened since ``node``, which closes its component."""
    closed = []
    while True:
        last, _ = open_nodes.popitem()
        closed.append(last)
        if last == node:
            return closed


def cycles(reads: Mapping[Node, Collection[Node]]) -> list[list[Node]]:
    """The components that are cycles: several nodes, or one that reads itself."""
    return [found for found in components(reads) if len(found) > 1 or found[0] in reads[found[0]]]


def cycle_path(reads: Mapping[Node, Collection[Node]]) -> list[Node] | None:
    """A way along the sources that ends where it began, for the error message; None without a cycle.

    >>> cycle_path({"a": ["b"], "b": ["c"], "c": ["a"]})
    ['a', 'b', 'c', 'a']
    >>> cycle_path({"a": ["b"]}) is None
    True
    """
    found = cycles(reads)
    if not found:
        return None
    inside = set(found[0])
    start = next(node for node in reads if node in inside)
    way = path(reads, next(source for source in reads[start] if source in inside), start)
    assert way is not None  # Every node of a cycle leads back to every other.
    return [start, *way]
