"""One refresh of stream tables that read each other: to their least fixpoint, staged together.

The sources are read at the cut. After a change that only inserts, into sources in which all queries are monotone too,
what is stored lies within the new fixpoint, and rounds begin there. After any other change they begin with nothing: a
row may have lost what it rested on.

The contents are compared with what is stored, so that readers see the rows that differ. The frontier of a member names
the others at the versions that the same unit commits: each agrees with its query at its frontier, and a refresh without
changed sources finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from pyspark.sql.types import StructType

from trickle.apply.unit import OWN
from trickle.catalog.records import Action
from trickle.errors import SchemaDrift, UnsupportedQuery
from trickle.lake.assign import conform
from trickle.lake.few import Few
from trickle.lake.rewrite import overwrite
from trickle.lake.scan import scan
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.stages import stages_named
from trickle.operators import Operator
from trickle.operators.clock import NOW
from trickle.refresh import faces as leaves
from trickle.refresh.compiled import compile_reading
from trickle.refresh.cycles import CIRCULAR
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.faces import Faces
from trickle.refresh.fixpoint import Fixpoint, Rows
from trickle.refresh.making import Made
from trickle.refresh.members import Cut, Member, facts_of
from trickle.refresh.monotone import obstacle
from trickle.refresh.outcome import Done, Work
from trickle.refresh.plan import Choice, choose
from trickle.refresh.recursion import LOCAL_ROWS
from trickle.refresh.settled import with_settled_views
from trickle.refresh.state import kept_in_full
from trickle.settings import Settings
from trickle.sources.lake import LakePosition
from trickle.tables.reading import Reading
from trickle.warehouse import Warehouse

_MOST_WIDENINGS = 8
"""Times that the types of columns may still change by reading each other's."""


def considered(
    warehouse: Warehouse, block: Sequence[Member], cut: Cut, staged: Mapping[int, Made], *, force: bool
) -> list[Work]:
    """What a refresh of a cycle would do: nothing to any member, or all of them anew."""
    there = {m.stream.relation.id: LakePosition(m.stream.relation.uid, m.stream.version or 0) for m in block}
    works = []
    for member in block:
        # What was never filled counts as empty: it is filled together with the others.
        readable = replace(member, reading=member.reading.for_columns())
        facts, frontier = facts_of(warehouse, readable, {**cut, **there}, staged, force=force)
        works.append(Work(readable, choose(facts), frontier, facts))
    if all(work.choice.action is Action.NO_DATA for work in works):
        return works
    return [replace(work, choice=_in_full(work.choice)) for work in works]


def _in_full(choice: Choice) -> Choice:
    if choice.code:
        return choice
    words = choice.reason if choice.action is Action.FULL else "another table of its cycle is computed anew"
    return Choice(Action.FULL, f"{words}; in full, as it lies on a cycle", choice.moves, "CIRCULAR")


def make(
    warehouse: Warehouse, works: Mapping[int, Work], staged: Mapping[int, Made], moment: datetime, stage: str
) -> list[Done]:
    """Compute and stage the next contents of all members, whose works are given by their refresh.

    Spark's jobs are told of the cycle as a whole.
    """
    with warehouse.engine.count_jobs() as count, stages_named(stage):
        made = _Circle(warehouse, list(works.values()), staged, moment).made()
    versions = {
        work.stream.relation.id: LakePosition(work.stream.relation.uid, one.next.version)
        for work, one in zip(works.values(), made, strict=True)
    }
    done = []
    for (refresh_id, work), one in zip(works.items(), made, strict=True):
        reached = {source: versions.get(source, position) for source, position in work.frontier.items()}
        done.append(Done(replace(work, frontier=reached), refresh_id, one, count.jobs))
    return done


@dataclass(frozen=True)
class _Circle:
    """The members of a cycle, and what they read."""

    warehouse: Warehouse
    works: Sequence[Work]
    staged: Mapping[int, Made]
    moment: datetime

    def made(self) -> list[Made]:
        shapes = self._shapes()
        trees = {work.stream.relation.id: self._tree(work, shapes) for work in self.works}
        goes_on = self._goes_on(trees)
        most_depth = self._settings.ivm_recursive_max_depth
        with closing(Faces(self.warehouse.engine, False, {NOW: self.moment}, max_depth=most_depth)) as faces:
            faces.tables.update(self._sources())
            fixpoint = Fixpoint(faces)
            for work in self.works:
                node = work.stream.relation.id
                fixpoint.add(str(work.member.name), trees[node], shapes[node], self._stored(node) if goes_on else None)
            rounds = self._run(fixpoint)
            return [self._overwritten(work, fixpoint, shapes, rounds) for work in self.works]

    def _run(self, fixpoint: Fixpoint) -> int:
        most = self._settings.max_fixpoint_iterations
        rounds, changing = fixpoint.run(most)
        if not changing:
            return rounds
        raise UnsupportedQuery(
            f"the cycle of stream tables {', '.join(fixpoint.tables)} did not settle after {most} rounds",
            detail=f"still changing: {', '.join(changing)}",
            hint="write UNION in place of UNION ALL, bound what the queries compute from each other, or raise "
            "trickle.max_fixpoint_iterations",
        )

    @cached_property
    def _settings(self) -> Settings:
        with self.warehouse.catalog.read() as tx:
            return self.warehouse.settings(tx)

    @cached_property
    def _snapshots(self) -> dict[int, Snapshot]:
        relations = [work.stream.relation for work in self.works]
        return {relation.id: open_snapshot(self.warehouse.location_of(relation)) for relation in relations}

    @cached_property
    def _is_rebuilt(self) -> bool:
        """Whether the tables get the columns that their queries give now."""
        return any(work.choice.action is Action.REINITIALIZE or not work.stream.populated for work in self.works)

    def _shapes(self) -> dict[int, StructType]:
        """The columns of every member: those stored, or those that the queries give to each other."""
        shapes = {node: relaxed(snapshot.schema) for node, snapshot in self._snapshots.items()}
        for _ in range(_MOST_WIDENINGS):
            found = {work.stream.relation.id: self._described(work, shapes) for work in self.works}
            if not self._is_rebuilt:
                self._refuse_drift(shapes, found)
                return shapes
            if found == shapes:
                return shapes
            shapes = found
        raise UnsupportedQuery(
            f"the columns of {self.works[0].member.name} and its cycle have no settled types",
            detail="each reads a wider type from the other",
            hint="CAST the columns to the types that are meant",
        )

    def _described(self, work: Work, shapes: Mapping[int, StructType]) -> StructType:
        return relaxed(self._reading(work, shapes).described(work.member.query, DEEPEST).schema)

    def _refuse_drift(self, stored: Mapping[int, StructType], found: Mapping[int, StructType]) -> None:
        for work in self.works:
            node = work.stream.relation.id
            if lost := lost_columns(stored[node], found[node]):
                raise SchemaDrift(
                    f"the query of {work.member.name} no longer gives the columns it was created with",
                    detail=f"column {lost[0]!r} is missing or of another type",
                    hint=f"CREATE OR REPLACE STREAM TABLE {work.member.name} ... or change the source back",
                )

    def _reading(self, work: Work, shapes: Mapping[int, StructType]) -> Reading:
        given = work.member.reading
        versions = {source: position.version for source, position in work.frontier.items()}
        empty = {node: replace(one, schema=shapes[node], files=()) for node, one in self._snapshots.items()}
        overlays = {source: made.next for source, made in self.staged.items()} | empty
        return with_settled_views(
            Reading(given.warehouse, given.relations, given.views, given.pins, versions, overlays)
        )

    def _tree(self, work: Work, shapes: Mapping[int, StructType]) -> Operator:
        wanted = tuple(shapes[work.stream.relation.id].names)
        return compile_reading(work.member.query, self._reading(work, shapes), wanted).tree

    def _sources(self) -> dict[str, leaves.Table]:
        """What the members read besides each other."""
        found = {}
        for work in self.works:
            for source in work.member.reading.tables:
                if source.id in self.staged:
                    found[str(source.name)] = leaves.Table(None, self.staged[source.id].next)
                elif source.id not in self._snapshots:
                    version = work.frontier[source.id].version
                    found[str(source.name)] = leaves.Table(
                        None, open_snapshot(self.warehouse.location_of(source), version)
                    )
        return found

    def _goes_on(self, trees: Mapping[int, Operator]) -> bool:
        """Whether what is stored lies within the new fixpoint."""
        if any(work.choice.code != "CIRCULAR" or work.member.query.time_dependent for work in self.works):
            return False
        if any(self._snapshots[work.stream.relation.id].version != work.stream.version for work in self.works):
            return False
        moved = {node: fact for work in self.works for node, fact in work.facts.sources.items() if fact.moved}
        if any(node in self._snapshots or fact.deleted != 0 for node, fact in moved.items()):
            return False
        return not any(obstacle(tree, {fact.name for fact in moved.values()}) for tree in trees.values())

    def _stored(self, node: int) -> Rows:
        snapshot = self._snapshots[node]
        return Rows(scan(self.warehouse.engine, snapshot), sum(file.live_rows or 0 for file in snapshot.files))

    def _overwritten(self, work: Work, fixpoint: Fixpoint, shapes: Mapping[int, StructType], rounds: int) -> Made:
        node, engine = work.stream.relation.id, self.warehouse.engine
        snapshot, rows = self._snapshots[node], fixpoint.tables[str(work.member.name)].rows
        schema = None if relaxed(snapshot.schema) == shapes[node] else shapes[node]
        prepared = overwrite(
            engine,
            snapshot,
            conform(rows.frame, schema or snapshot.schema),
            difference=schema is None and work.stream.populated,
            schema=schema,
            few=Few(engine) if rows.count <= LOCAL_ROWS else None,
        )
        return Made(
            snapshot,
            {} if prepared.is_empty else {OWN: prepared},
            kept_in_full(CIRCULAR) if self._is_rebuilt else None,
            {"fixpoint_iterations": rounds},
        )
