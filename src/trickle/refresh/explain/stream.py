"""``explain_st``: how a stream table is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trickle.algebra.names import TableName
from trickle.catalog import history
from trickle.catalog.records import RefreshRecord
from trickle.delta.groups import Groups
from trickle.delta.stages import Stage, unrestricted
from trickle.refresh.compiled import Compiled
from trickle.refresh.explain.opened import Opened, open_stream
from trickle.refresh.explain.words import Speller, column_list, table_name, upkeep
from trickle.sources.lake import LakePosition
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class Fact:
    """One thing that is known: about the stream table, a source or a stage."""

    about: str
    property: str
    value: str


def explain_st(warehouse: Warehouse, name: TableName) -> list[Fact]:
    """How a stream table is kept: its state, its sources, and each stage with its aggregates."""
    opened = open_stream(warehouse, name)
    with warehouse.catalog.read() as tx:
        last = next(iter(history.recent(tx, opened.stream.relation.id, 1)), None)
    own = str(opened.member.name)
    facts = [Fact(own, about, value) for about, value in _state(opened, last)]
    facts += _sources(opened)
    if isinstance(opened.compiled, Compiled):
        speller = Speller(opened.compiled.stages)
        for stage in opened.compiled.stages:
            about = table_name(stage.table, own)
            facts += [Fact(about, what, value) for what, value in _stage(stage, speller, own)]
    return facts


def _state(opened: Opened, last: RefreshRecord | None) -> Iterator[tuple[str, str]]:
    stream = opened.stream
    yield "query", stream.query
    if stream.canonical is not None:
        yield "query as it is run", stream.canonical
    yield "refresh mode", stream.refresh_mode.value
    yield "effective mode", stream.effective_mode or "not refreshed yet"
    yield "status", stream.status.value
    yield "version", "not filled yet" if stream.version is None else str(stream.version)
    if isinstance(opened.compiled, str):
        code, _, words = opened.compiled.partition(": ")
        yield "can be kept", "in full only"
        yield "why in full", f"{words} ({code})"
    else:
        yield "can be kept", "by changes"
    if last is not None:
        yield "last refresh", _told(last)


def _told(record: RefreshRecord) -> str:
    at = record.started_at.isoformat(sep=" ", timespec="seconds")
    counts = f"inserted {record.rows_inserted}, deleted {record.rows_deleted}"
    why = record.error_message or record.reason or "no reason given"
    return f"{record.action.value} {record.status.value} at {at}, {counts}: {why}"


def _sources(opened: Opened) -> Iterator[Fact]:
    for source in sorted(opened.member.reading.tables, key=lambda relation: relation.name):
        about = f"source {source.name}"
        frontier = opened.stream.frontier.get(source.id)
        yield Fact(about, "frontier", "none" if frontier is None else f"version {LakePosition.parse(frontier).version}")
        yield Fact(about, "stands at", f"version {opened.cut[source.id].version}")


def _stage(stage: Stage, speller: Speller, own: str) -> Iterator[tuple[str, str]]:
    yield "is kept", speller.way(stage)
    yield "reads", ", ".join(table_name(table, own) for table in sorted(stage.reads)) or "no table"
    yield "columns", column_list(stage)
    if isinstance(stage.keeping, Groups):
        kept = stage.keeping.kept
        for name, text in speller.calls(stage).items():
            how = upkeep(kept[name])
            yield text, f"{how.kind}: {how.words}"
    for part in unrestricted(stage):
        yield "reads its input whole", part
