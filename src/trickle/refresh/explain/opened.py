"""What is explained: a stream table with its stages, or a query that is no stream table yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trickle.algebra.names import TableName, check_columns
from trickle.catalog.records import StreamTable
from trickle.errors import UnsupportedError, UserError
from trickle.lake.shape import relaxed
from trickle.lake.types import check_storable
from trickle.operators.clock import NOW, NOW_OLD
from trickle.refresh.compiled import Compiled
from trickle.refresh.compiling import compile_reading, compiled_for
from trickle.refresh.definition import Definition
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.faces import Faces, Table
from trickle.refresh.making import Task
from trickle.refresh.members import Cut, Member, load, require_filled, take_cut
from trickle.refresh.settled import settled, with_settled_views
from trickle.sources.lake import LakePosition
from trickle.sql import Query, query
from trickle.tables.reading import Reading, resolve
from trickle.warehouse import Warehouse

UNSTEADY = "it depends on chance, or a view that it reads on the clock"

QUERY = TableName.of(["query"])
"""What a query is called that has no name."""


@dataclass(frozen=True)
class Opened:
    """A stream table, and its task as its next refresh would begin with it."""

    member: Member
    cut: Cut
    task: Task

    @property
    def stream(self) -> StreamTable:
        return self.member.stream

    @property
    def compiled(self) -> Compiled | str:
        """Its stages; or why it is kept in full only."""
        return self.task.compiled

    def stages(self) -> Compiled:
        """Its stages, which have to be there."""
        if isinstance(self.compiled, str):
            code, _, words = self.compiled.partition(": ")
            raise UserError(
                f"stream table {self.member.name} is kept in full only: there is no plan of its change",
                detail=f"{words} ({code})",
                hint=f"CALL trickle.explain_st('{self.member.name}')",
            )
        return self.compiled

    def faces(self) -> Faces:
        """The sources as they stand, for asking Spark about trees over them."""
        moments = {NOW: self.task.moment, NOW_OLD: self.task.moment}
        faces = Faces(self.task.warehouse.engine, is_small=True, moments=moments)
        for source in self.member.reading.tables:
            snapshot = self.task.reading.snapshot(source)
            faces.tables[str(source.name)] = Table(snapshot, snapshot)
        return faces


def open_stream(warehouse: Warehouse, name: TableName) -> Opened:
    """A stream table, also one that is suspended."""
    member, cut = located(warehouse, name)
    before = {source: LakePosition.parse(position) for source, position in member.stream.frontier.items()}
    task = Task(warehouse, member, before, cut, {}, warehouse.clock.now())
    return Opened(member, cut, replace(task, compiled=compiled_for(task)))


def located(warehouse: Warehouse, name: TableName) -> tuple[Member, Cut]:
    """A stream table before its next refresh, and where its sources stand. Spark is not asked."""
    with warehouse.catalog.read() as tx:
        (member,) = load(warehouse, tx, [name], force=True)
    require_filled([member])
    return member, take_cut(warehouse, [member])


@dataclass(frozen=True)
class Asked:
    """A query that a stream table could have: as it was given, made definite, and what it reads."""

    given: Query
    run: Query
    notices: tuple[str, ...]
    reading: Reading
    columns: tuple[str, ...]
    refused: UnsupportedError | None
    """Why it cannot be made definite, if so."""

    @property
    def is_unsteady(self) -> bool:
        """Whether it is kept in full only because it depends on chance, or a view that it reads on the clock."""
        return bool(self.given.volatile) or any(view.is_unsteady for view in self.reading.views.values())

    def compiled(self) -> Compiled:
        """Its stages; UnsupportedQuery when it cannot be kept by changes."""
        if self.refused is not None:
            raise self.refused
        return compile_reading(self.run, self.reading)


def read_query(warehouse: Warehouse, text: str) -> Asked:
    """Everything that is checked when a stream table is created, but for how it is kept."""
    given = Definition.of(warehouse, QUERY, text, {}).query
    with warehouse.catalog.read() as tx:
        reading = resolve(warehouse, tx, given)
    for view in reading.views.values():
        Definition.of(warehouse, QUERY, view.text, {})
    reading = reading.for_columns()
    run, notices, refused = _definite(given, reading)
    frame = reading.described(run, DEEPEST)
    check_columns(frame.columns)
    check_storable(relaxed(frame.schema))
    return Asked(given, run, notices, with_settled_views(reading), tuple(frame.columns), refused)


def _definite(given: Query, reading: Reading) -> tuple[Query, tuple[str, ...], UnsupportedError | None]:
    """The query with one result where SQL leaves it open, and what was done to it; or why there is none."""
    try:
        found = settled(given.text, reading)
    except UnsupportedError as error:
        return given, (), error
    except UserError:
        reading.described(given, DEEPEST)  # Spark's words come first.
        raise
    return given if found.text == given.text else query(found.text, max_depth=DEEPEST), found.notices, None
