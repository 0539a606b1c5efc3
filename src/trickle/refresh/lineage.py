"""Who reads whom, as the catalog knows it: tables only, views looked through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from trickle.catalog import relations
from trickle.catalog.records import Kind, Relation
from trickle.dag.graph import closure, reverse


@dataclass(frozen=True)
class Lineage:
    """The graph of tables: what each stream table reads, without the views in between."""

    tables: Mapping[int, Relation]
    reads: Mapping[int, frozenset[int]]

    @cached_property
    def readers(self) -> Mapping[int, set[int]]:
        """For each table, the stream tables that read it."""
        return reverse(self.reads)

    def is_stream_table(self, relation_id: int) -> bool:
        return self.tables[relation_id].kind is Kind.STREAM_TABLE

    def upstream(self, relation_id: int) -> set[int]:
        """Everything that a table is computed from."""
        return closure(self.reads, [relation_id])

    def base_sources(self, relation_id: int) -> set[int]:
        """The tables at the other end: those that are not stream tables."""
        return {source for source in self.upstream(relation_id) if not self.is_stream_table(source)}

    def downstream(self, relation_id: int) -> set[int]:
        """Everything that is computed from a table."""
        return closure(self.readers, [relation_id])

    def met_twice(self, relation_id: int) -> list[str]:
        """The sources that reach a table on several ways, one of them through a stream table."""
        sources = self.reads.get(relation_id, frozenset())
        ways = {source: {source} | self.upstream(source) for source in sources}
        found = {
            shared
            for one in ways
            for other in ways
            if one != other and (self.is_stream_table(one) or self.is_stream_table(other))
            for shared in ways[one] & ways[other]
        }
        return sorted(self.name(shared) for shared in found)

    def name(self, relation_id: int) -> str:
        return str(self.tables[relation_id].name)


def load_lineage(tx: Session) -> Lineage:
    """The graph as it stands."""
    tables = {relation.id: relation for relation in relations.listing(tx) if relation.kind is not Kind.VIEW}
    reads: dict[int, set[int]] = {}
    for dependency in relations.all_dependencies(tx):
        if dependency.relation_id in tables and dependency.source_id in tables:
            reads.setdefault(dependency.relation_id, set()).add(dependency.source_id)
    return Lineage(tables, {reader: frozenset(sources) for reader, sources in reads.items()})
