"""Which stages a stream table has: its query compiled, where its mode asks for that."""

from __future__ import annotations

from trickle.catalog.records import RefreshMode
from trickle.errors import UnsupportedError
from trickle.lake.snapshot import open_snapshot
from trickle.refresh.compiled import Compiled, Question, compile_query, visible
from trickle.refresh.dependencies import DEEPEST
from trickle.refresh.making import Task


def compiled_for(task: Task) -> Compiled | str:
    """The stages of a stream table; for one that is kept in full only, why (``CODE: words``)."""
    stream = task.member.stream
    if stream.refresh_mode is RefreshMode.FULL:
        return "FULL_MODE: its refresh mode is FULL"
    if stream.always_refresh or any(view.is_unsteady for view in task.member.reading.views.values()):
        return "UNSTEADY: the query depends on time or chance"
    try:
        return _compiled(task)
    except UnsupportedError as error:
        if stream.refresh_mode is RefreshMode.AUTO:
            return f"UNSUPPORTED: {error.message}"
        raise


def _compiled(task: Task) -> Compiled:
    member, reading = task.member, task.reading
    schemas = {source.name: reading.snapshot(source).schema for source in reading.tables}
    wanted: tuple[str, ...] | None = None
    if member.stream.populated and not member.stream.needs_reinitialize:
        stored = open_snapshot(task.warehouse.location_of(member.stream.relation)).schema
        wanted = tuple(visible(stored).names)
    question = Question(
        text=member.query.text,
        views=tuple((name, view.text) for name, view in sorted(reading.views.items())),
        schemas=tuple((name, schema.json()) for name, schema in sorted(schemas.items())),
        wanted=wanted,
        # What was parsed at creation is not too deep now.
        max_depth=DEEPEST,
    )
    return compile_query(task.warehouse.engine, question, schemas, lambda: task.reading.bind(member.query).columns)
