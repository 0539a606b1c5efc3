"""Random graphs of stream tables: base tables are 0 to 4, stream tables 5 and above."""

from __future__ import annotations

from hypothesis import strategies as st

from trickle.dag.streams import READ_COMMITTED, REPEATABLE_READ, Group, Stream

BASE = range(5)


@st.composite
def streams(draw: st.DrawFn, cycles: bool = False, most: int = 9) -> dict[int, Stream[int]]:
    """Stream tables that read base tables and each other; without cycles each reads only smaller ones."""
    nodes = range(len(BASE), len(BASE) + draw(st.integers(0, most)))
    found = {}
    for node in nodes:
        choice = range(nodes.stop) if cycles else range(node)
        reads = draw(st.frozensets(st.sampled_from(choice), min_size=1, max_size=3))
        found[node] = Stream(reads, atomic=draw(st.booleans() | st.just(True)))
    return found


@st.composite
def groups(draw: st.DrawFn, of: dict[int, Stream[int]]) -> list[Group[int]]:
    """Declared groups; a stream table is in one at most, and some members do not exist."""
    free = [*of, 1000]
    found = []
    for name in draw(st.sets(st.sampled_from("abc"))):
        members = draw(st.frozensets(st.sampled_from(free), max_size=4)) if free else frozenset()
        free = [node for node in free if node not in members]
        found.append(Group(name, members, draw(st.sampled_from([READ_COMMITTED, REPEATABLE_READ]))))
    return found
