"""What only DDL changes: the graph, its units, schedules, settings. Kept until the catalog's number moves.

The catalog counts every change of a definition, in the same transaction. A tick that finds the number it knows reads
none of this again; when one stream table was added, changed or dropped, the graph is derived from the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from trickle.catalog import groups, pins, scheduling, source_gates, streams, watermarks
from trickle.catalog.records import Kind, RefreshMode, Relation, SourceGate, WatermarkGroupRecord
from trickle.dag.dag import Dag, build
from trickle.dag.streams import Group, Stream
from trickle.lake.location import Location
from trickle.refresh.lineage import Lineage, load_lineage
from trickle.scheduler.schedules import Effective, Scheduled, effective_schedules
from trickle.settings import Settings
from trickle.warehouse import Warehouse

_DERIVED = 8
"""Changed stream tables up to which a graph is derived from the one before."""


@dataclass(frozen=True)
class Definitions:
    """The definitions at one number of the catalog."""

    number: int
    settings: Settings
    lineage: Lineage
    dag: Dag[int]
    gated: Mapping[int, SourceGate]
    """Sources that are being loaded."""
    watermark_groups: Sequence[WatermarkGroupRecord]
    places: Mapping[int, Location]
    """Where the base tables lie that stream tables read."""
    schedules: Mapping[int, Effective]
    pinned: frozenset[int] = frozenset()
    """Tables that stand at a pin and that no tick refreshes; one gets its pin together with a definition."""

    @cached_property
    def base(self) -> tuple[Relation, ...]:
        """The base tables that stream tables read."""
        return tuple(self.lineage.tables[source] for source in self.places)

    def name(self, relation_id: int) -> str:
        return self.lineage.name(relation_id)


def definitions(warehouse: Warehouse) -> Definitions:
    """The definitions as they stand."""
    with warehouse.catalog.read() as tx:
        return load_definitions(warehouse, tx, scheduling.ddl_number(tx), None)


def load_definitions(warehouse: Warehouse, tx: Session, number: int, before: Definitions | None) -> Definitions:
    """The definitions as they stand, from the ones before where little changed."""
    lineage = load_lineage(tx)
    known = [table for table in streams.schedulable(tx) if table.id in lineage.tables]
    # Those that are IMMEDIATE are never refreshed by a tick: others read them as they read base tables.
    tables = {table.id: table for table in known if table.refresh_mode is not RefreshMode.IMMEDIATE}
    nodes = {
        table.id: Stream(lineage.reads.get(table.id, frozenset()), table.options.get("diamond_consistency") != "none")
        for table in tables.values()
    }
    declared = [
        Group(group.name, frozenset(group.member_ids) & nodes.keys(), group.isolation.value)
        for group in groups.listing(tx)
    ]
    read = {source for node in nodes.values() for source in node.reads}
    base = [lineage.tables[source] for source in sorted(read - nodes.keys())]
    dag = _graph(nodes, declared, before.dag if before else None)
    settings = warehouse.settings(tx)
    return Definitions(
        number=number,
        settings=settings,
        lineage=lineage,
        dag=dag,
        gated={gate.source_id: gate for gate in source_gates.listing(tx) if gate.gated},
        watermark_groups=watermarks.groups(tx),
        places={relation.id: warehouse.location_of(relation) for relation in base},
        schedules=effective_schedules(
            {t.id: Scheduled(t.schedule, str(t.options.get("tier", "hot"))) for t in tables.values()},
            {node: dag.readers.get(node, ()) for node in nodes},
            default=settings.default_schedule,
            zone=settings.schedule_timezone,
            tiered=settings.tiered_scheduling,
            names={t.id: str(t.name) for t in tables.values()},
        ),
        pinned=frozenset(pins.of(tx)) | {source.id for source in base if source.kind is Kind.STREAM_TABLE},
    )


def _graph(nodes: Mapping[int, Stream[int]], declared: list[Group[int]], before: Dag[int] | None) -> Dag[int]:
    if before is None:
        return build(nodes, declared)
    changed = [n for n in sorted(nodes.keys() | before.streams.keys()) if nodes.get(n) != before.streams.get(n)]
    if len(changed) > _DERIVED:
        return build(nodes, declared)
    dag = before
    for node in changed:
        dag = dag.with_stream(node, nodes[node]) if node in nodes else dag.without_stream(node)
    return dag.with_groups(declared)
