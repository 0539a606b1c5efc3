"""Which indexes changes would use and sources lack (pure).

A change looks up rows of the other tables by what joins compare, and of its own table by what windows are partitioned
by and by the groups that must be read again. First rows that move up are found in the order of LIMIT: of the whole
order, or all rows that are equal in its beginning would have to be sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from trickle.delta.first_rows import FirstRows
from trickle.delta.groups import Groups
from trickle.delta.parts import Part
from trickle.delta.reach import equalities
from trickle.delta.stages import Stage
from trickle.immediate.postgres.tables import IndexTerm, Table
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
from trickle.postgres.names import identifier

_MOST_COLUMNS = 32
"""Of an index in PostgreSQL."""


def lacking_indexes(stages: Sequence[Stage], tables: Mapping[str, Table]) -> list[str]:
    """Statements that make the indexes which are not there."""
    wanted = dict.fromkeys(found for stage in stages for found in _looked_up(stage))
    plain = [
        f"CREATE INDEX ON {tables[label].sql} ({identifier(column)})"
        for label, column in wanted
        if label in tables and column not in tables[label].indexed
    ]
    ordered = [
        f"CREATE INDEX ON {tables[label].sql} ({', '.join(term.sql for term in order)})"
        for label, order in (_order(stage, tables) for stage in stages)
        if order and not any(_begins(index, order) for index in tables[label].indexes)
    ]
    return [*plain, *ordered]


def _order(stage: Stage, tables: Mapping[str, Table]) -> tuple[str, tuple[IndexTerm, ...]]:
    """The order of first rows, where all of it is of one table; up to where it tells the table's rows apart."""
    if not isinstance(stage.keeping, FirstRows):
        return "", ()
    labels: set[str] = set()
    order: list[IndexTerm] = []
    for term in stage.keeping.top.order:
        found = list(_sources(stage.keeping.top.input, term.name))
        if len(found) != 1:
            return "", ()
        label, column = found[0]
        labels.add(label)
        order.append(IndexTerm(column, term.descending, term.nulls_first))
        key = tables[label].key if label in tables else ()
        if key and {each.column for each in order}.issuperset(key):
            break
    return (labels.pop(), tuple(order[:_MOST_COLUMNS])) if len(labels) == 1 and labels <= tables.keys() else ("", ())


def _begins(index: tuple[IndexTerm, ...], order: tuple[IndexTerm, ...]) -> bool:
    """Whether an index has an order, forwards or backwards."""
    return index[: len(order)] in (order, tuple(term.reversed for term in order))


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
