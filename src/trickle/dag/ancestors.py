"""Everything a stream table depends on, directly or through others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trickle.dag.components import components
from trickle.dag.streams import Key, Stream


def ancestors(
    streams: Mapping[Key, Stream[Key]],
    nodes: Collection[Key],
    known: Mapping[Key, frozenset[Key]],
) -> dict[Key, frozenset[Key]]:
    """The sources of ``nodes``, base tables and stream tables; a node of a cycle is a source of itself.

    ``known`` has those of all other stream tables that ``nodes`` depend on.
    """
    found = dict(known)
    for together in components({node: streams[node].reads for node in nodes}):
        # Sources come first, so what lies outside of the component is in ``found`` already.
        direct = {source for node in together for source in streams[node].reads}
        above = frozenset(direct.union(*(found.get(source, ()) for source in direct)))
        for node in together:
            found[node] = above
    return {node: found[node] for node in nodes}
