"""``list_auxiliary_columns``: what is stored beside the columns that readers see, and what for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from trickle.algebra.names import TableName
from trickle.delta.first_rows import FirstRows
from trickle.delta.fixpoint import Fixpoint
from trickle.delta.groups import Groups
from trickle.delta.parts import group_count
from trickle.delta.plan import OWN
from trickle.delta.stages import Rows, Stage
from trickle.operators import Output
from trickle.refresh.compiled import Compiled
from trickle.refresh.explain.asking import Asking
from trickle.refresh.explain.opened import open_stream
from trickle.refresh.explain.words import Speller, is_hidden, table_name
from trickle.warehouse import Warehouse


@dataclass(frozen=True)
class AuxiliaryColumn:
    """A stored column that is not the query's own: hidden in the stream table, or anywhere in an inner table."""

    table: str
    column: str
    type: str
    purpose: str


def list_auxiliary_columns(warehouse: Warehouse, name: TableName) -> list[AuxiliaryColumn]:
    """Hidden columns of a stream table, and all columns of its inner tables. None when it is kept in full only."""
    opened = open_stream(warehouse, name)
    if not isinstance(opened.compiled, Compiled):
        return []
    stages, own = opened.compiled.stages, str(opened.member.name)
    speller = Speller(stages)
    with closing(opened.faces()) as faces:
        return [
            AuxiliaryColumn(table_name(stage.table, own), column, types[column], purpose)
            for stage in stages
            for types in (_types(Asking(faces), stage),)
            for column, purpose in _purposes(stage, speller)
            if stage.table != OWN or is_hidden(column)
        ]


def _types(asking: Asking, stage: Stage) -> Mapping[str, str]:
    """Visible columns have the types that the query gives them."""
    fields = [*asking.schema(stage.whole).fields, *asking.schema(stage.plain).fields]
    return {field.name: field.dataType.simpleString() for field in fields}


def _purposes(stage: Stage, speller: Speller) -> Iterator[tuple[str, str]]:
    keeping = stage.keeping
    match keeping:
        case Groups():
            for output in keeping.stored:
                yield output.name, _of_group(stage, keeping, output, speller)
        case FirstRows() | Fixpoint():
            shown = {output.name for output in keeping.outputs}
            why = "tells the order or the row" if isinstance(keeping, FirstRows) else "the recursion goes on from"
            for output in keeping.stored:
                value = speller.text(stage, output.value)
                yield output.name, value if output.name in shown else f"{value}, which {why}"
        case Rows():
            for output in keeping.stored:
                yield output.name, "a column of the query"


def _of_group(stage: Stage, groups: Groups, output: Output, speller: Speller) -> str:
    calls = speller.calls(stage)
    asked = {shown.name: shown for shown in groups.outputs}
    if output.name in asked:
        value = asked[output.name].value
        text = calls.get(value.name) or speller.text(stage, value)
        return f"the key {text}" if value.name in groups.aggregate.keys else text
    if output.value.name in groups.aggregate.keys:
        return f"the key {speller.text(stage, output.value)}, which the query does not show"
    return _of_part(stage, groups, output.value.name, speller)


def _of_part(stage: Stage, groups: Groups, name: str, speller: Speller) -> str:
    calls = speller.calls(stage)
    users = [calls[call] for call, kept in groups.kept.items() if name in {part.name for part in kept.parts}]
    if name == group_count().name:
        also = f"; also for {', '.join(users)}" if users else ""
        return f"rows of the group: a group without rows is gone{also}"
    part = next(part for part in groups.parts if part.name == name)
    text = speller.text(stage, part.stored)
    return f"{text}, kept for {', '.join(users)}" if users != [text] else f"{text}, which columns are computed from"
