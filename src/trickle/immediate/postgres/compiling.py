"""A query compiled for PostgreSQL: its stages, the tables that keep them, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from trickle.delta.first_rows import FirstRows
from trickle.delta.plan import OWN
from trickle.delta.stages import Stage, split, unrestricted
from trickle.delta.typed import aligned
from trickle.errors import UnsupportedQuery
from trickle.immediate.postgres.lookups import Certain
from trickle.immediate.postgres.names import ours
from trickle.immediate.postgres.reading import Reading, read_query
from trickle.immediate.postgres.statement import Store
from trickle.immediate.postgres.tables import Table
from trickle.immediate.postgres.types import Analyst
from trickle.immediate.postgres.windows import settled
from trickle.operators import Scan, walk
from trickle.postgres.names import identifier


@dataclass(frozen=True)
class Limits:
    """How much a trigger may be asked to do."""

    topk: int
    recursion: int
    depth: int


@dataclass(frozen=True)
class Compiled:
    """A query, its stages with their tables, and the columns of its sources that it reads."""

    reading: Reading
    stores: tuple[Store, ...]

    @property
    def own(self) -> Store:
        """The stream table itself."""
        return self.stores[-1]

    @property
    def inner(self) -> tuple[Store, ...]:
        """The tables of the stages before."""
        return self.stores[:-1]

    @property
    def tables(self) -> Mapping[str, Table]:
        """The sources by their labels."""
        return self.reading.tables

    @property
    def certain(self) -> Mapping[str, frozenset[str]]:
        """The columns of sources and stages that are never NULL."""
        sources = {
            one: frozenset(column.name for column in table.columns if column.not_null)
            for one, table in self.tables.items()
        }
        return sources | {store.stage.table: store.certain for store in self.stores}

    def used(self, label: str) -> tuple[str, ...]:
        """The columns of a source that are read, or tell its rows apart, in the order of the table."""
        found = set(self.tables[label].key)
        for store in self.stores:
            for node in walk(store.stage.keeping.whole()):
                if isinstance(node, Scan) and node.table == label:
                    found.update(column for column, _ in node.fields)
        return tuple(column.name for column in self.tables[label].columns if column.name in found)


def compile_query(
    connection: Connection[Any], view: int, number: int, place: tuple[str, str], limits: Limits
) -> Compiled:
    """The stages of a view's query, kept in tables of stream table ``number``, the last one at ``place``."""
    reading = read_query(connection, view, limits.depth)
    analyst = Analyst(connection, reading.tables)
    tree = aligned(settled(reading.tree), analyst.columns_of)
    stages = split(tree, analyst.types_of, OWN, analyst.stored_types)
    stores: list[Store] = []
    certain = {
        one: frozenset(column.name for column in table.columns if column.not_null)
        for one, table in reading.tables.items()
    }
    for n, stage in enumerate(stages):
        _refuse(stage, limits)
        is_last = n == len(stages) - 1
        table = identifier(*place) if is_last else ours(f"state_{number}_{n + 1}")
        visible = dict(zip((f"v{k}" for k, _ in enumerate(reading.names, start=1)), reading.names, strict=True))
        names = {column: visible.get(column, column) if is_last else column for column in stage.columns}
        stored = dict(analyst.stored_types(stage.plain, stage.whole))
        if is_last:
            stored |= dict(zip(visible, reading.types, strict=True))
        known = Certain(certain, {}).columns(stage.keeping.whole())
        certain[stage.table] = known & frozenset(stage.columns)
        types = analyst.types_in(stage.whole) | analyst.types_in(stage.plain) | stored
        stores.append(Store(stage, table, names, stored, types, certain[stage.table], limits.recursion))
        _refuse_types(analyst, stores[-1])
    return Compiled(reading, tuple(stores))


def _refuse_types(analyst: Analyst, store: Store) -> None:
    """Refuse keys that cannot be looked up."""
    for column in store.key:
        if not analyst.has_hash(store.stored[column]):
            raise UnsupportedQuery(
                f"column {store.names[column]!r} has the type {store.stored[column]}, of which PostgreSQL has no hash",
                detail="rows could not be found again when they go",
                hint="cast it to text in the query",
            )


def _refuse(stage: Stage, limits: Limits) -> None:
    for reason in unrestricted(stage):
        raise UnsupportedQuery(
            f"{reason} reads its whole input at every change",
            detail="an IMMEDIATE stream table must not cost more the larger its sources are",
            hint="use DIFFERENTIAL, or give the window a PARTITION BY",
        )
    match stage.keeping:
        case FirstRows() if (stage.keeping.top.limit or 0) > limits.topk:
            raise UnsupportedQuery(
                f"LIMIT {stage.keeping.top.limit} is more than IMMEDIATE keeps",
                detail=f"ivm_topk_max_limit is {limits.topk}",
                hint="set ivm_topk_max_limit higher, or use DIFFERENTIAL",
            )
        case _:
            return
