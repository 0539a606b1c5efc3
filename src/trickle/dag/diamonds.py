"""Diamonds: where two ways from one source come together again.

Let D read s1 and s2, and let common be what both of them are or depend on. When common is not empty, a change of it
reaches D twice. Were D to read one way's tables after the change and the other's before it, D would show a state that
never was. So D belongs together with every stream table that lies on one of the ways, below common: those must be
refreshed to the same positions and committed at once. What lies in common itself is one state for both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Generic

from trickle.dag.streams import Key, Stream


@dataclass(frozen=True)
class Diamond(Generic[Key]):
    """The ways that come together at a stream table."""

    at: Key
    members: frozenset[Key]
    """The stream tables on the ways, and the one where they meet."""
    shared: frozenset[Key]
    """The sources where the ways part: what members read of the common part."""
    atomic: bool = True


def diamond_at(
    node: Key, streams: Mapping[Key, Stream[Key]], above: Mapping[Key, frozenset[Key]]
) -> Diamond[Key] | None:
    """The diamond that comes together at ``node``, of all pairs of its sources; None when ways never meet.

    >>> streams = {
    ...     "left": Stream(frozenset({"base"})),
    ...     "right": Stream(frozenset({"base"})),
    ...     "top": Stream(frozenset({"left", "right"})),
    ... }
    >>> above = {"left": {"base"}, "right": {"base"}, "top": {"left", "right", "base"}}
    >>> sorted(diamond_at("top", streams, above).members)
    ['left', 'right', 'top']
    """
    reach = {source: above.get(source, frozenset()) | {source} for source in streams[node].reads}
    members, shared = {node}, set[Key]()
    for first, second in combinations(reach, 2):
        common = reach[first] & reach[second]
        if common:
            shared |= common
            ways = (reach[first] | reach[second]) - common
            members |= {one for one in ways if one in streams and not common.isdisjoint(above[one])}
    if len(members) == 1:
        return None
    read = {source for member in members for source in streams[member].reads}
    return Diamond(node, frozenset(members), frozenset((shared & read) - members), streams[node].atomic)
