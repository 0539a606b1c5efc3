"""Which stages a stream table has: its query compiled, where its mode asks for that."""

from __future__ import annotations

from trickle.catalog.records import RefreshMode
from trickle.errors import UnsupportedError
from trickle.lake.snapshot import open_snapshot
from trickle.refresh.compiled import Compiled, Question, compile_query, visible
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.making import Task
from trickle.sql import Query
from trickle.tables.reading import Reading


def compiled_for(task: Task) -> Compiled | str:
    """The stages of a stream table; for one that is kept in full only, why (``CODE: words``)."""
    stream = task.member.stream
    if stream.refresh_mode is RefreshMode.FULL:
        return "FULL_MODE: its refresh mode is FULL"
    if task.member.query.volatile or any(view.is_unsteady for view in task.member.reading.views.values()):
        return "UNSTEADY: the query depends on chance, or a view that it reads on the clock"
    try:
        return _compiled(task)
    except UnsupportedError as error:
        if stream.refresh_mode is RefreshMode.AUTO:
            return f"UNSUPPORTED: {error.message}"
        raise


def _compiled(task: Task) -> Compiled:
    stream = task.member.stream
    wanted: tuple[str, ...] | None = None
    if stream.populated and not stream.needs_reinitialize:
        stored = open_snapshot(task.warehouse.location_of(stream.relation)).schema
        wanted = tuple(visible(stored).names)
    return compile_reading(task.member.query, task.reading, wanted)


def compile_reading(text: Query, reading: Reading, wanted: tuple[str, ...] | None = None) -> Compiled:
    """The stages of a query over what it reads; ``wanted`` are the columns to keep, all by default."""
    schemas = {source.name: reading.snapshot(source).schema for source in reading.tables}
    question = Question(
        text=text.text,
        views=tuple((name, view.text) for name, view in sorted(reading.views.items())),
        schemas=tuple((name, schema.json()) for name, schema in sorted(schemas.items())),
        wanted=wanted,
        # What was parsed at creation is not too deep now.
        max_depth=DEEPEST,
    )
    return compile_query(reading.warehouse.engine, question, schemas, lambda: reading.bind(text).columns)
