"""The next contents of one stream table, computed and staged: in full, or by changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.algebra.names import INTERNAL_PREFIX, TableName, quote
from trickle.apply.unit import OWN as OWN_FOLDER
from trickle.catalog.records import Action, Relation
from trickle.changes.between import ChangeBuffer
from trickle.delta.fixpoint import anchored
from trickle.delta.plan import OWN
from trickle.delta.stages import Stage
from trickle.errors import HistoryLost, SchemaDrift, UnknownTable
from trickle.lake.assign import conform
from trickle.lake.changes import ChangeCount, consolidate
from trickle.lake.create import create
from trickle.lake.few import Few
from trickle.lake.indexes import Indexes, indexes_in
from trickle.lake.lookup import Lookups
from trickle.lake.prepared import Prepared
from trickle.lake.rewrite import overwrite
from trickle.lake.shape import lost_columns, relaxed
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.staged import next_snapshot, staged_change, staged_locally
from trickle.operators.clock import NOW, NOW_OLD
from trickle.refresh.compiled import Compiled, compile_reading
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.differential import keep
from trickle.refresh.faces import Faces, Table
from trickle.refresh.members import Member
from trickle.refresh.settled import with_settled_views
from trickle.refresh.state import State, folder_of, kept_in_full
from trickle.settings import Settings
from trickle.sources.lake import LakePosition
from trickle.sql import Query, query
from trickle.sql.clock import at_time
from trickle.sql.recursive import is_recursive
from trickle.tables.reading import Reading
from trickle.warehouse import Warehouse

SMALL_CHANGE = 1_000_000
"""Changed rows up to which what is computed from them is held on the driver."""


@dataclass(frozen=True)
class Made:
    """What one refresh of a stream table has staged, by the folder of the table that it is for."""

    snapshot: Snapshot
    prepared: Mapping[str, Prepared] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    """What is remembered afterwards; None when that stays as it is."""
    details: Mapping[str, object] = field(default_factory=dict)
    change: ChangeCount | None = None
    """How many rows change, of a base table that is changed by a statement."""

    @property
    def own(self) -> Prepared | None:
        return self.prepared.get(OWN_FOLDER)

    @property
    def next(self) -> Snapshot:
        """The stream table as it will be."""
        return self.snapshot if self.own is None else next_snapshot(self.snapshot, self.own)


@dataclass(frozen=True)
class Task:
    """A stream table, what it is to become, and what it reads.

    ``before`` is its frontier and ``frontier`` the one to reach; ``staged`` are sources of the same unit.
    """

    warehouse: Warehouse
    member: Member
    before: Mapping[int, LakePosition]
    frontier: Mapping[int, LakePosition]
    staged: Mapping[int, Made]
    moment: datetime
    """The time of the refresh, which the clock's functions stand for."""
    compiled: Compiled | str = ""
    """The stages; or why the stream table is kept in full only."""

    @cached_property
    def reading(self) -> Reading:
        """The sources as they will be read, and views made definite."""
        given = self.member.reading
        versions = {source: position.version for source, position in self.frontier.items()}
        overlays = {source: made.next for source, made in self.staged.items()}
        return with_settled_views(
            Reading(given.warehouse, given.relations, given.views, given.pins, versions, overlays)
        )

    @property
    def query(self) -> Query:
        """The query, with the time of the refresh for the clock."""
        if not self.member.query.time_dependent:
            return self.member.query
        return query(at_time(self.member.query.text, self.moment, DEEPEST), max_depth=DEEPEST)

    @property
    def name(self) -> TableName:
        return self.member.name


def make_full(task: Task, action: Action) -> Made:
    """The contents computed from the sources alone."""
    member, engine, reading = task.member, task.warehouse.engine, task.reading
    location = task.warehouse.location_of(member.stream.relation)
    snapshot = open_snapshot(location)
    rebuild = action is Action.REINITIALIZE or not member.stream.populated
    given = reading.described(task.query, DEEPEST)
    if isinstance(task.compiled, str):
        schema = _next_schema(given.schema, snapshot, rebuild=rebuild, name=task.name)
        wanted = schema or snapshot.schema
        full = kept_in_full(task.compiled) if rebuild else None
        with closing(_new_faces(task)) as faces:
            rows = (
                conform(faces.run(compile_reading(task.query, reading).tree), wanted)
                if is_recursive(task.query.text, DEEPEST)
                else given.select(*[quote(c) for c in wanted.names])
            )
            return _overwritten(task, snapshot, rows, schema, full, _few(task, faces))
    with closing(_new_faces(task)) as faces:
        few = _few(task, faces)
        prepared: dict[str, Prepared] = {}
        versions: dict[str, int] = {}
        if rebuild:
            for stage in task.compiled.inner:
                folder, inner = _inner_snapshot(task, task.compiled, stage)
                faces.types = stage.types
                rows = conform(faces.run(stage.keeping.whole()), inner.schema)
                prepared[folder] = overwrite(engine, inner, rows, difference=False, few=few, order=stage.looked_up_by)
                faces.tables[stage.table] = Table(inner, next_snapshot(inner, prepared[folder]))
                versions[folder] = faces.tables[stage.table].new.version
        own = task.compiled.own
        faces.types = own.types
        frame = faces.run(own.keeping.whole()) if rebuild else _in_full(faces, own, snapshot)
        shape = _stored_shape(relaxed(given.schema), frame.schema)
        schema = _next_schema(shape, snapshot, rebuild=rebuild, name=task.name)
        rows = conform(frame, schema or snapshot.schema)
        state = None
        if rebuild:
            state = State(task.compiled.signature, versions, positions(task.frontier), task.moment.isoformat())
        remembered = None if state is None else state.to_json()
        made = _overwritten(task, snapshot, rows, schema, remembered, few, own.looked_up_by)
        return replace(made, prepared={**{f: p for f, p in prepared.items() if not p.is_empty}, **made.prepared})


def make_differential(task: Task, state: State) -> Made:
    """The contents changed by the changes of the sources."""
    assert isinstance(task.compiled, Compiled)
    return _kept(task, state, task.compiled.stages)


def catch_up(task: Task, state: State) -> Made:
    """The inner tables brought from where they stand to where the stream table does, after full refreshes."""
    assert isinstance(task.compiled, Compiled)
    behind = {source: LakePosition.parse(position) for source, position in state.frontier.items()}
    until = task.member.stream.data_timestamp or task.moment
    then = replace(task, before=behind, frontier=task.before, staged={}, moment=until)
    return _kept(then, state, task.compiled.inner)


def _kept(task: Task, state: State, stages: Sequence[Stage]) -> Made:
    assert isinstance(task.compiled, Compiled)
    location = task.warehouse.location_of(task.member.stream.relation)
    snapshot = open_snapshot(location)
    stored = {OWN: snapshot}
    folders = {stage.table: folder_of(task.compiled.signature, stage) for stage in task.compiled.inner}
    for table, folder in folders.items():
        stored[table] = open_snapshot(location.child(*folder.split("/")), state.tables[folder])
    small = _is_small(task)
    with closing(_faces(task, is_small=small)) as faces, task.warehouse.engine.tuned("change"):
        before = datetime.fromisoformat(state.moment) if state.moment else task.moment
        faces.moments = {NOW: task.moment, NOW_OLD: before} if task.compiled.reads_clock else {}
        unchanged = {str(source.name) for source in task.member.reading.tables if not _moved(task, source)}
        kept = keep(faces, stages, stored, unchanged)
    prepared = {folders.get(table, OWN_FOLDER): change for table, change in kept.prepared.items()}
    versions = {
        folder: next_snapshot(stored[table], prepared[folder]).version if folder in prepared else stored[table].version
        for table, folder in folders.items()
    }
    added = state.added + 1 if task.compiled.is_floating else 0
    after = State(task.compiled.signature, versions, positions(task.frontier), task.moment.isoformat(), added)
    details = {
        "changes_read": kept.rows_read,
        "files_read": faces.files_read + faces.lookups.files,
        "files_looked_through": faces.lookups.files,
        "rows_looked_through": faces.lookups.rows,
        "rows_indexed": faces.lookups.rows_indexed,
    }
    if task.compiled.unrestricted:
        details["read_whole"] = list(task.compiled.unrestricted)
    return Made(snapshot, prepared, after.to_json(), details)


def positions(frontier: Mapping[int, LakePosition]) -> dict[int, str]:
    """A frontier as the catalog keeps it."""
    return {source: str(position) for source, position in frontier.items()}


def _few(task: Task, faces: Faces) -> Few | None:
    """Whether the result of little to read will be few rows: most likely, where no row is made of nothing."""
    return Few(task.warehouse.engine) if faces.is_light else None


def _overwritten(
    task: Task,
    snapshot: Snapshot,
    frame: DataFrame,
    schema: StructType | None,
    state: Mapping[str, Any] | None,
    few: Few | None,
    order: Sequence[str] = (),
) -> Made:
    # Consumers see what changed, not that everything was written anew.
    difference = task.member.has_consumers and schema is None and task.member.stream.populated
    prepared = overwrite(
        task.warehouse.engine, snapshot, frame, difference=difference, schema=schema, few=few, order=order
    )
    return Made(snapshot, {} if prepared.is_empty else {OWN_FOLDER: prepared}, state)


def _stored_shape(visible: StructType, stored: StructType) -> StructType:
    """The stored columns: the visible ones have the types that Spark gives to the query itself."""
    known = {field.name.lower(): field for field in visible.fields}
    return StructType([known.get(field.name.lower(), field) for field in relaxed(stored).fields])


def _in_full(faces: Faces, own: Stage, snapshot: Snapshot) -> DataFrame:
    """All rows of a stream table. What asks for NULL in vain is left out, if hidden columns keep their types then."""
    less, _ = faces.without_nulls(own.whole)
    if less is not own.whole:
        frame = faces.run(less)
        hidden = [field for field in snapshot.schema.fields if field.name.startswith(INTERNAL_PREFIX)]
        if not lost_columns(StructType(hidden), frame.schema):
            return frame
    return faces.run(own.whole)


def _inner_snapshot(task: Task, compiled: Compiled, stage: Stage) -> tuple[str, Snapshot]:
    """The table of an inner stage, made when it is not there."""
    folder = folder_of(compiled.signature, stage)
    location = task.warehouse.location_of(task.member.stream.relation).child(*folder.split("/"))
    try:
        return folder, open_snapshot(location)
    except UnknownTable:
        with closing(_new_faces(task)) as faces:
            plain, whole = (faces.run(anchored(tree)).schema for tree in (stage.plain, stage.whole))
        return folder, create(location, _stored_shape(relaxed(plain), whole))


def _faces(task: Task, *, is_small: bool) -> Faces:
    settings = _settings(task)
    faces = Faces(
        task.warehouse.engine,
        is_small,
        {NOW: task.moment},
        max_depth=settings.ivm_recursive_max_depth,
        lookups=Lookups(_indexes(task.warehouse, settings)),
    )
    for source in task.member.reading.tables:
        faces.tables[str(source.name)] = _source(task, source)
    return faces


def _indexes(warehouse: Warehouse, settings: Settings) -> Indexes | None:
    """The indexes of looked up files, in a folder that no schema can have. They are mapped: the disk has to be here."""
    if not warehouse.root.is_local or not settings.lookup_index_mb:
        return None
    return indexes_in(warehouse.root.child("_indexes").uri, settings.lookup_index_mb << 20)


def _new_faces(task: Task) -> Faces:
    """The sources as they are now: what they were does not matter, and may be gone."""
    depth = _settings(task).ivm_recursive_max_depth
    faces = Faces(task.warehouse.engine, False, {NOW: task.moment}, max_depth=depth)
    for source in task.member.reading.tables:
        faces.tables[str(source.name)] = Table(None, _new(task, source))
    return faces


def _settings(task: Task) -> Settings:
    with task.warehouse.catalog.read() as tx:
        return task.warehouse.settings(tx)


def _new(task: Task, source: Relation) -> Snapshot:
    made = task.staged.get(source.id)
    if made is not None:
        return made.next
    return open_snapshot(task.warehouse.location_of(source), task.frontier[source.id].version)


def _source(task: Task, source: Relation) -> Table:
    location = task.warehouse.location_of(source)
    before, new = task.before.get(source.id), _new(task, source)
    if before is None:
        return Table(None, new)
    if before.uid != source.uid:
        raise HistoryLost(f"source {source.name} was replaced", hint="it is read anew")
    change = partial(_changed, task, source, before)
    if not _moved(task, source):
        return Table(new, new)
    local = partial(_changed_locally, task, source, before)
    return Table(open_snapshot(location, before.version), new, change, local)


def _changed(task: Task, source: Relation, before: LakePosition, columns: Sequence[str]) -> DataFrame:
    """The net change of a source, also when its last part is staged by the same unit."""
    engine, made = task.warehouse.engine, task.staged.get(source.id)
    until = LakePosition(source.uid, made.snapshot.version) if made is not None else task.frontier[source.id]
    rows = ChangeBuffer(task.warehouse.location_of(source), before, until).rows(engine, columns)
    if made is None or made.own is None:
        return rows
    # What the last commit brought and the staged one takes away never was: nothing is computed from it.
    return consolidate(rows.union(staged_change(engine, made.snapshot, made.own, columns).select(rows.columns)))


def _changed_locally(task: Task, source: Relation, before: LakePosition, columns: Sequence[str]) -> pa.Table | None:
    """The same on the driver, where it is small."""
    made = task.staged.get(source.id)
    if made is not None:
        alone = made.own is not None and before.version == made.snapshot.version
        return staged_locally(task.warehouse.engine, made.snapshot, made.own, columns) if alone and made.own else None
    return ChangeBuffer(task.warehouse.location_of(source), before, task.frontier[source.id]).local(columns)


def _moved(task: Task, source: Relation) -> bool:
    before, made = task.before.get(source.id), task.staged.get(source.id)
    return before != task.frontier[source.id] or (made is not None and made.own is not None)


def _is_small(task: Task) -> bool:
    total = 0
    for source in task.member.reading.tables:
        before, made = task.before.get(source.id), task.staged.get(source.id)
        if before is None or not _moved(task, source):
            continue
        if made is not None and made.own is not None:
            total += made.own.inserted + made.own.deleted
        count = ChangeBuffer(task.warehouse.location_of(source), before, task.frontier[source.id]).count()
        if made is None:
            if count.inserted is None or count.deleted is None:
                return False
            total += count.inserted + count.deleted
    return total <= SMALL_CHANGE


def _next_schema(found: StructType, snapshot: Snapshot, *, rebuild: bool, name: TableName) -> StructType | None:
    """None when the result fits the table; the new schema when the table is being rebuilt."""
    found = relaxed(found)
    if rebuild and relaxed(snapshot.schema) != found:
        return found
    lost = lost_columns(snapshot.schema, found)
    if lost:
        now = next((f.dataType.simpleString() for f in found.fields if f.name.lower() == lost[0].lower()), "missing")
        raise SchemaDrift(
            f"the query of {name} no longer gives the columns it was created with",
            detail=f"column {lost[0]!r} was {snapshot.schema[lost[0]].dataType.simpleString()} and is now {now}",
            hint=f"CREATE OR REPLACE STREAM TABLE {name} ... or change the source back",
        )
    return None
