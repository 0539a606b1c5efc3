"""Units: the stream tables that are refreshed and committed together, and the order of the units.

Diamonds and declared groups that overlap are one. That may make two units wait for each other (a table between two
members of a declared group reads the one and is read by the other); such units are one as well, so that the units
always have an order: a unit's sources lie in the unit itself or in units before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from trickle.dag.components import components, cycles
from trickle.dag.diamonds import Diamond
from trickle.dag.streams import READ_COMMITTED, REPEATABLE_READ, Group, Key, Stream, stream_reads


class UnitKind(StrEnum):
    """Why the members of a unit belong together."""

    SINGLETON = "SINGLETON"
    ATOMIC_GROUP = "ATOMIC_GROUP"
    """A diamond, or several that overlap."""
    REFRESH_GROUP = "REFRESH_GROUP"
    """Declared, perhaps with diamonds that overlap."""
    CYCLE = "CYCLE"
    """Some members read each other."""


@dataclass(frozen=True)
class Unit(Generic[Key]):
    """What is refreshed and committed together."""

    kind: UnitKind
    members: tuple[Key, ...]
    """Each after the members that it reads; a cycle as a block."""
    isolation: str
    key: str
    """The members as text: a unit with other members is another unit."""


def units_of(
    streams: Mapping[Key, Stream[Key]], diamonds: Iterable[Diamond[Key]], groups: Collection[Group[Key]]
) -> tuple[tuple[Unit[Key], ...], dict[str, frozenset[str]]]:
    """All units, each after those it waits for, and the keys of the units that each one waits for."""
    reads = stream_reads(streams)
    sets: list[frozenset[Key]] = [diamond.members for diamond in diamonds if diamond.atomic]
    sets += [group.members & streams.keys() for group in groups]
    waiting: list[list[Key]] = components(_between(reads, _joined(reads, sets)))
    home: dict[Key, Key] = _joined(reads, sets + [frozenset(units) for units in waiting])
    return _described(reads, home, _between(reads, home), groups)


def _between(reads: Mapping[Key, Collection[Key]], home: Mapping[Key, Key]) -> dict[Key, set[Key]]:
    """The graph of the sets that nodes are in: which one reads from which other ones."""
    found: dict[Key, set[Key]] = {one: set() for one in home.values()}
    for node, sources in reads.items():
        found[home[node]].update(home[source] for source in sources if home[source] != home[node])
    return found


def _joined(reads: Mapping[Key, Collection[Key]], sets: Iterable[Collection[Key]]) -> dict[Key, Key]:
    """The least member of the set that each node is in, when sets that overlap are one (union-find)."""
    parent = {node: node for node in reads}

    def least(node: Key) -> Key:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for together in sets:
        roots = {least(node) for node in together}
        for root in roots:
            parent[root] = min(roots)
    return {node: least(node) for node in reads}


def _described(
    reads: Mapping[Key, Collection[Key]],
    home: Mapping[Key, Key],
    between: Mapping[Key, set[Key]],
    groups: Collection[Group[Key]],
) -> tuple[tuple[Unit[Key], ...], dict[str, frozenset[str]]]:
    members: dict[Key, list[Key]] = {}
    for together in components(reads):
        for node in sorted(together):
            members.setdefault(home[node], []).append(node)
    circular = {node for cycle in cycles(reads) for node in cycle}
    units = {one: _unit(members[one], circular, groups) for one in between}
    level: dict[Key, int] = {}
    for (one,) in components(between):
        level[one] = max((level[source] + 1 for source in between[one]), default=0)
    placed = sorted(between, key=lambda one: (level[one], one))
    waits = {units[one].key: frozenset(units[source].key for source in between[one]) for one in placed}
    return tuple(units[one] for one in placed), waits


def _unit(members: Collection[Key], circular: Collection[Key], groups: Collection[Group[Key]]) -> Unit[Key]:
    declared = [group for group in groups if not group.members.isdisjoint(members)]
    kind = UnitKind.SINGLETON if len(members) == 1 else UnitKind.ATOMIC_GROUP
    if declared and len(members) > 1:
        kind = UnitKind.REFRESH_GROUP
    if any(node in circular for node in members):
        kind = UnitKind.CYCLE
    strict = any(group.isolation == REPEATABLE_READ for group in declared)
    isolation = REPEATABLE_READ if strict else READ_COMMITTED
    return Unit(kind, tuple(members), isolation, "+".join(str(node) for node in sorted(members)))
