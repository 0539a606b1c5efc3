"""The graph of all stream tables as a value: what each depends on, its diamonds, and the units in their order.

DDL changes one stream table at a time. What a stream table depends on, and whether ways meet at it, follows from what
lies above it; so a change at X is a change for X and what lies below it, and for nothing else. A graph derived from
another computes those anew and keeps the rest; the units, which take one pass over the edges, are always made anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

from trickle.dag.ancestors import ancestors
from trickle.dag.components import cycles
from trickle.dag.diamonds import Diamond, diamond_at
from trickle.dag.graph import closure, reverse
from trickle.dag.streams import Group, Key, Stream, stream_reads
from trickle.dag.units import Unit, units_of


@dataclass(frozen=True)
class Dag(Generic[Key]):
    """Stream tables, what they read, and what follows from it. Made by ``build`` and by its own methods."""

    streams: Mapping[Key, Stream[Key]]
    groups: tuple[Group[Key], ...]
    above: Mapping[Key, frozenset[Key]] = field(repr=False)
    """Everything each stream table depends on: base tables and stream tables."""
    diamonds: Mapping[Key, Diamond[Key]]
    """By the stream table where the ways meet; those that are not atomic too."""
    units: tuple[Unit[Key], ...]
    """Each after those it waits for."""
    waits_for: Mapping[str, frozenset[str]] = field(repr=False)
    """The key of a unit, and those of the units that it reads from."""

    def with_stream(self, node: Key, stream: Stream[Key]) -> Dag[Key]:
        """With one stream table added, or changed."""
        return self._derived({**self.streams, node: stream}, node, self.groups)

    def without_stream(self, node: Key) -> Dag[Key]:
        """With one stream table less; who still reads it reads it as a base table."""
        return self._derived({n: s for n, s in self.streams.items() if n != node}, node, self.groups)

    def with_groups(self, groups: Iterable[Group[Key]]) -> Dag[Key]:
        """With other declared groups."""
        return _finished(self.streams, groups, self.above, self.diamonds)

    def _derived(self, streams: Mapping[Key, Stream[Key]], changed: Key, groups: Collection[Group[Key]]) -> Dag[Key]:
        below = {changed} | closure(self.readers, [changed])
        kept = {node: found for node, found in self.above.items() if node not in below}
        touched = [node for node in sorted(below) if node in streams]
        above = kept | ancestors(streams, touched, kept)
        diamonds = {at: found for at, found in self.diamonds.items() if at not in below}
        return _finished(streams, groups, above, diamonds | _diamonds(touched, streams, above))

    @cached_property
    def readers(self) -> Mapping[Key, Collection[Key]]:
        """The stream tables that read a node themselves."""
        return reverse({node: stream.reads for node, stream in self.streams.items()})

    @cached_property
    def _units(self) -> Mapping[Key, Unit[Key]]:
        return {member: unit for unit in self.units for member in unit.members}

    def unit_of(self, node: Key) -> Unit[Key]:
        """The unit that a stream table is refreshed in."""
        return self._units[node]

    def below(self, node: Key) -> frozenset[Key]:
        """The stream tables that depend on a node, directly or through others."""
        return frozenset(closure(self.readers, [node]))

    def base_sources(self, node: Key) -> frozenset[Key]:
        """The base tables that a stream table depends on, directly or through others."""
        return frozenset(source for source in self.above[node] if source not in self.streams)

    @cached_property
    def cycles(self) -> tuple[tuple[Key, ...], ...]:
        """The stream tables that read each other."""
        return tuple(tuple(sorted(found)) for found in cycles(stream_reads(self.streams)))

    @cached_property
    def levels(self) -> tuple[tuple[Unit[Key], ...], ...]:
        """The units by level: those of one level do not read each other, and can run side by side."""
        level: dict[str, int] = {}
        found: list[list[Unit[Key]]] = []
        for unit in self.units:
            level[unit.key] = max((level[key] + 1 for key in self.waits_for[unit.key]), default=0)
            if level[unit.key] == len(found):
                found.append([])
            found[level[unit.key]].append(unit)
        return tuple(map(tuple, found))


def build(streams: Mapping[Key, Stream[Key]], groups: Iterable[Group[Key]] = ()) -> Dag[Key]:
    """The graph of all stream tables.

    >>> dag = build({
    ...     "orders_by_day": Stream(frozenset({"orders"})),
    ...     "returns_by_day": Stream(frozenset({"orders"})),
    ...     "report": Stream(frozenset({"orders_by_day", "returns_by_day"})),
    ...     "summary": Stream(frozenset({"report"})),
    ... })
    >>> [(unit.kind.value, unit.members) for unit in dag.units]
    [('ATOMIC_GROUP', ('orders_by_day', 'returns_by_day', 'report')), ('SINGLETON', ('summary',))]
    """
    nodes = sorted(streams)
    above = ancestors(streams, nodes, {})
    return _finished(streams, groups, above, _diamonds(nodes, streams, above))


def _diamonds(
    nodes: Iterable[Key], streams: Mapping[Key, Stream[Key]], above: Mapping[Key, frozenset[Key]]
) -> dict[Key, Diamond[Key]]:
    found = {node: diamond_at(node, streams, above) for node in nodes}
    return {node: diamond for node, diamond in found.items() if diamond is not None}


def _finished(
    streams: Mapping[Key, Stream[Key]],
    groups: Iterable[Group[Key]],
    above: Mapping[Key, frozenset[Key]],
    diamonds: Mapping[Key, Diamond[Key]],
) -> Dag[Key]:
    declared = tuple(sorted(groups, key=lambda group: group.name))
    units, waits_for = units_of(streams, diamonds.values(), declared)
    return Dag(dict(streams), declared, above, diamonds, units, waits_for)
