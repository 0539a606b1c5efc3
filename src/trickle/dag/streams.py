"""What the graph knows of a stream table and of a declared group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)
"""What names a node: the id of a relation, or its name in tests and examples. It has an order, so results have one."""

READ_COMMITTED = "READ_COMMITTED"
REPEATABLE_READ = "REPEATABLE_READ"


@dataclass(frozen=True)
class Stream(Generic[Key]):
    """One stream table: what it reads itself, base tables and stream tables, with views seen through."""

    reads: frozenset[Key]
    atomic: bool = True
    """Whether a diamond that comes together here is refreshed as one (option diamond_consistency)."""


@dataclass(frozen=True)
class Group(Generic[Key]):
    """Stream tables that somebody declared to be refreshed together."""

    name: str
    members: frozenset[Key]
    isolation: str = READ_COMMITTED


def stream_reads(streams: Mapping[Key, Stream[Key]]) -> dict[Key, list[Key]]:
    """The graph of stream tables alone, in the order of its keys."""
    return {node: sorted(source for source in streams[node].reads if source in streams) for node in sorted(streams)}
