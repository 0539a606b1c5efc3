"""Which stages a stream table has: its query compiled, where its mode asks for that."""

from __future__ import annotations

from trickle.catalog.records import RefreshMode
from trickle.errors import UnsupportedError
from trickle.lake.snapshot import open_snapshot
from trickle.refresh.compiled import Compiled, compile_reading, visible
from trickle.refresh.making import Task

__all__ = ["compile_reading", "compiled_for"]


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
