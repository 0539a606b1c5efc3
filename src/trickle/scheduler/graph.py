"""The graph of stream tables for people: diamonds, circles, what a table depends on, a drawing. No Spark job."""

from __future__ import annotations

from dataclasses import dataclass

from trickle.algebra.names import TableName
from trickle.catalog import streams
from trickle.dag import render
from trickle.dag.dag import Dag
from trickle.dag.streams import Stream
from trickle.errors import InvalidOption
from trickle.scheduler.definitions import Definitions, definitions
from trickle.scheduler.schedules import policy_of
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class DiamondRow:
    """One stream table of a diamond."""

    diamond: str
    """The stream table where the ways meet."""
    member: str
    is_convergence: bool
    shared_sources: str
    consistency: str
    schedule_policy: str
    unit: str


@dataclass(frozen=True)
class ComponentRow:
    """Stream tables that read each other, directly or through others."""

    component: int
    members: str
    size: int
    is_cycle: bool


@dataclass(frozen=True)
class TreeRow:
    """A table in the tree of what another depends on."""

    depth: int
    name: str
    kind: str
    status: str | None
    schedule: str | None
    line: str
    """The name behind the lines of a drawing."""


def diamond_groups(warehouse: Warehouse) -> list[DiamondRow]:
    """The diamonds of the graph, a row for each stream table in one."""
    known = definitions(warehouse)
    with warehouse.catalog.read() as tx:
        options = {table.id: table.options for table in streams.schedulable(tx)}
    rows = []
    for at, diamond in sorted(known.dag.diamonds.items(), key=lambda pair: known.name(pair[0])):
        unit = known.dag.unit_of(at)
        policy = policy_of([_text(options[member].get("diamond_schedule_policy")) for member in unit.members])
        rows += [
            DiamondRow(
                diamond=known.name(at),
                member=known.name(member),
                is_convergence=member == at,
                shared_sources=", ".join(sorted(known.name(source) for source in diamond.shared)),
                consistency="atomic" if diamond.atomic else "none",
                schedule_policy=policy,
                unit=unit.key,
            )
            for member in sorted(diamond.members, key=known.name)
        ]
    return rows


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def scc_status(warehouse: Warehouse) -> list[ComponentRow]:
    """The circles of the graph; none unless allow_circular."""
    known = definitions(warehouse)
    return [
        ComponentRow(number, ", ".join(sorted(map(known.name, members))), len(members), is_cycle=True)
        for number, members in enumerate(known.dag.cycles, 1)
    ]


def dependency_tree(warehouse: Warehouse, name: TableName | None = None) -> list[TreeRow]:
    """What a stream table depends on, as a tree; of all stream tables that nothing reads, without a name."""
    known = definitions(warehouse)
    with warehouse.catalog.read() as tx:
        standing = {table.id: (table.status.value, table.schedule) for table in streams.schedulable(tx)}
        roots = (
            [streams.get(tx, name).relation.id]
            if name is not None
            else [node for node in standing if not known.lineage.readers.get(node)]
        )
    rows: list[TreeRow] = []

    def grow(node: int, depth: int, before: str, mark: str, path: frozenset[int]) -> None:
        status, schedule = standing.get(node, (None, None))
        kind = known.lineage.tables[node].kind.value
        rows.append(TreeRow(depth, known.name(node), kind, status, schedule, f"{before}{mark}{known.name(node)}"))
        if node in path or node not in standing:
            return  # A circle is drawn once.
        sources = sorted(known.lineage.reads.get(node, ()), key=known.name)
        below = before + {"": "", "├── ": "│   ", "└── ": "    "}[mark]
        for source in sources:
            grow(source, depth + 1, below, "└── " if source == sources[-1] else "├── ", path | {node})

    for root in sorted(roots, key=known.name):
        grow(root, 0, "", "", frozenset())
    return rows


def _whole(known: Definitions) -> Dag[int]:
    """The graph with the stream tables that are IMMEDIATE, which no tick has to do with."""
    dag, lineage = known.dag, known.lineage
    for node in sorted(lineage.tables.keys() - dag.streams.keys()):
        if lineage.is_stream_table(node):
            dag = dag.with_stream(node, Stream(lineage.reads.get(node, frozenset())))
    return dag


def explain_dag(warehouse: Warehouse, format: str = "mermaid") -> str:
    """The whole graph as text for Mermaid or Graphviz (``dot``)."""
    known = definitions(warehouse)
    named = {relation.id: str(relation.name) for relation in known.lineage.tables.values()}
    match format.lower():
        case "mermaid":
            return render.mermaid(_whole(known), named)
        case "dot":
            return render.dot(_whole(known), named)
        case other:
            raise InvalidOption(f"no format {other!r} for a graph", hint="formats: mermaid, dot")
