"""Which indexes changes would use and sources lack (pure).

A change looks up rows of the other tables by what joins compare, and of its own table by what windows are partitioned
by and by the groups that must be read again. First rows that move up are found in the order of LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from trickle.delta.first_rows import FirstRows
from trickle.delta.groups import Groups
from trickle.delta.parts import Part
from trickle.delta.reach import equalities
from trickle.delta.stages import Stage
from trickle.immediate.postgres.names import identifier
from trickle.immediate.postgres.tables import Table
from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Project,
    Scan,
    TopK,
    UnionAll,
    Window,
    walk,
)


def lacking_indexes(stages: Sequence[Stage], tables: Mapping[str, Table]) -> list[str]:
    """Statements that make the indexes which are not there."""
    wanted = dict.fromkeys(found for stage in stages for found in _looked_up(stage))
    return [
        f"CREATE INDEX ON {tables[label].sql} ({identifier(column)})"
        for label, column in wanted
        if label in tables and column not in tables[label].indexed
    ]


def _looked_up(stage: Stage) -> Iterator[tuple[str, str]]:
    """Columns of tables by which rows are looked up."""
    keeping = stage.keeping
    for node in walk(keeping.whole()):
        match node:
            case Join():
                for pair in equalities(node):
                    yield from _sources(node.left, pair.left)
                    yield from _sources(node.right, pair.right)
            case Window():
                for key in node.partition[:1]:
                    yield from _sources(node.input, key)
            case _:
                pass
    if isinstance(keeping, Groups) and any(_may_be_lost(part) for part in keeping.parts):
        for key in keeping.aggregate.keys[:1]:
            yield from _sources(keeping.aggregate.input, key)
    if isinstance(keeping, FirstRows):
        for term in keeping.top.order[:1]:
            yield from _sources(keeping.top.input, term.name)


def _may_be_lost(part: Part) -> bool:
    """Whether a deletion may ask for the whole group; of exact sums only one that is not finite does."""
    return part.anew != exp.false() and not isinstance(part.anew, exp.In)


def _sources(tree: Operator, column: str) -> Iterator[tuple[str, str]]:
    """The columns of tables that a column's values are."""
    match tree:
        case Scan():
            yield from ((tree.table, own) for own, name in tree.fields if name == column)
        case Project():
            value = next(output.value for output in tree.outputs if output.name == column)
            if isinstance(value, exp.Column):
                yield from _sources(tree.input, value.name)
        case Join():
            side = tree.left if column in tree.left.columns or tree.kind is JoinKind.SEMI else tree.right
            yield from _sources(side, column)
        case UnionAll():
            for part in tree.parts:
                yield from _sources(part, column)
        case Filter() | Generate() | Aggregate() | Window() | TopK() if column in tree.input.columns:
            yield from _sources(tree.input, column)
        case _:
            return
