"""Stream tables that read each other: which ones, and whether that may be.

A cycle has a meaning where every query on it is monotone in its tables (``refresh/monotone.py``): the least
contents that agree with all of the queries, which ``refresh/circular.py`` computes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from trickle.algebra.names import TableName
from trickle.catalog import streams
from trickle.catalog.records import RefreshMode, Relation, StreamTable
from trickle.dag.components import components, cycle_path, cycles
from trickle.errors import CycleError, UnsupportedQuery
from trickle.refresh.compiled import compile_reading
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.lineage import Lineage, load_lineage
from trickle.refresh.members import Member
from trickle.refresh.monotone import obstacle
from trickle.refresh.settled import with_settled_views
from trickle.sql import Query
from trickle.tables.reading import Reading, parsed, resolve
from trickle.warehouse import Warehouse

BY_CHANGES = (RefreshMode.DIFFERENTIAL, RefreshMode.IMMEDIATE)
"""Modes that promise a refresh by changes."""
CIRCULAR = "CIRCULAR: it lies on a cycle of stream tables"
"""Why the tables of a cycle are kept in full only."""


@dataclass(frozen=True)
class Defined:
    """A stream table on a cycle, as it is or as it is about to be."""

    name: TableName
    query: Query
    reading: Reading
    mode: RefreshMode


@dataclass(frozen=True)
class Cycle:
    """A cycle that a new query closes: its tables, and the others of them as they are."""

    tables: frozenset[str]
    path: tuple[str, ...]
    others: tuple[Defined, ...]

    def check(self, new: Defined) -> None:
        """Refuse a cycle that has no meaning, or that somebody wants to be kept by changes."""
        for one in (new, *self.others):
            self._refuse_differential(one)
            self._refuse_unsteady(one)
            tree = compile_reading(one.query, with_settled_views(one.reading)).tree
            found = obstacle(tree, self.tables)
            if found is not None:
                raise CycleError(
                    f"the query of {one.name} is not monotone on a cycle of stream tables: {found}",
                    detail=self._shown,
                    hint="a cycle may have filters, inner and semi joins, UNION, DISTINCT and generators; EXCEPT, "
                    "INTERSECT and subqueries with a value are aggregates, NOT IN and FULL JOIN are anti joins",
                )

    def _refuse_differential(self, one: Defined) -> None:
        if one.mode in BY_CHANGES:
            raise _not_by_changes(one.name, self._shown)

    def _refuse_unsteady(self, one: Defined) -> None:
        if one.query.volatile or any(view.is_unsteady for view in one.reading.views.values()):
            raise CycleError(
                f"the query of {one.name}, on a cycle of stream tables, depends on chance or on a view that reads the "
                "clock",
                detail=self._shown,
                hint="read the clock in the query itself",
            )

    @property
    def _shown(self) -> str:
        return " -> ".join(self.path)


def closed_by(warehouse: Warehouse, tx: Session, own: Relation, reading: Reading) -> Cycle | None:
    """The cycle that a stream table lies on when it reads this; None when there is none."""
    lineage = load_lineage(tx)
    reads = {**lineage.reads, own.id: frozenset(source.id for source in reading.tables)}
    inside = _cycle_of(reads, own.id)
    if not inside:
        return None
    narrow = {node: sorted(reads[node] & inside) for node in (own.id, *sorted(inside - {own.id}))}
    return Cycle(
        tables=frozenset(lineage.name(node) for node in inside),
        path=tuple(lineage.name(node) for node in cycle_path(narrow) or ()),
        others=tuple(_defined(warehouse, tx, streams.by_id(tx, node)) for node in sorted(inside - {own.id})),
    )


def _defined(warehouse: Warehouse, tx: Session, stream: StreamTable) -> Defined:
    text = parsed(stream.text, DEEPEST)
    return Defined(stream.relation.name, text, resolve(warehouse, tx, text).for_columns(), stream.refresh_mode)


def refuse_differential(warehouse: Warehouse, stream: StreamTable) -> None:
    """Refuse to have a stream table kept by changes that lies on a cycle."""
    with warehouse.catalog.read() as tx:
        lineage = load_lineage(tx)
    inside = _cycle_of(lineage.reads, stream.relation.id)
    if inside:
        raise _not_by_changes(stream.relation.name, ", ".join(sorted(map(lineage.name, inside))))


def _not_by_changes(name: TableName, shown: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"{name} lies on a cycle of stream tables and cannot be kept by changes",
        detail=f"CIRCULAR: {shown}",
        hint="use refresh_mode = 'FULL' or 'AUTO'",
    )


def peers(tx: Session, own: Relation) -> set[int]:
    """The other stream tables of the cycle that a stream table lies on."""
    return set(_cycle_of(load_lineage(tx).reads, own.id) - {own.id})


def with_cycles(lineage: Lineage, names: Iterable[TableName]) -> list[TableName]:
    """Stream tables by name, each with all that lie on a cycle with it."""
    wanted = list(names)
    ids = {relation.id for relation in lineage.tables.values() if relation.name in wanted}
    together = [node for found in cycles(lineage.reads) if not ids.isdisjoint(found) for node in found]
    return list(dict.fromkeys([*wanted, *(lineage.tables[node].name for node in together)]))


def blocks(members: Sequence[Member]) -> list[list[Member]]:
    """The members of a unit, each after those it reads; those that read each other as one block."""
    by_id = {member.stream.relation.id: member for member in members}
    found = components({node: [s for s in _sources(member) if s in by_id] for node, member in by_id.items()})
    return [[member for node, member in by_id.items() if node in together] for together in map(set, found)]


def is_circular(block: Sequence[Member]) -> bool:
    """Whether the members of a block read each other, or its only one itself."""
    return len(block) > 1 or block[0].stream.relation.id in _sources(block[0])


def _sources(member: Member) -> Collection[int]:
    return {source.id for source in member.reading.tables}


def _cycle_of(reads: Mapping[int, frozenset[int]], node: int) -> frozenset[int]:
    return frozenset(next((found for found in cycles(reads) if node in found), ()))
