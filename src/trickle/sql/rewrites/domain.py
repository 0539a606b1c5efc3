"""Unnests any subquery (after Neumann and Kemper, "Unnesting Arbitrary Queries").

Let D be the distinct values that the outside has in the columns which a subquery R uses. The dependent join
``D >< R`` = all rows d + r with d in D and r in R(d) is pushed down R until below it nothing uses D any more; there it
is an ordinary join. The whole is joined back on D's columns, where NULL equals NULL.

    filter, project, generate   of D >< input; a project carries D's columns along
    inner join                  D goes to the side that uses it; to both, when both do, and these are joined on D
    left, semi, anti join       D goes to the left, for each of its rows counts; and to the right when that uses it
    union all                   D >< each part
    aggregate, window           with D's columns as further keys. An aggregate without keys has a row for every d, also
                                when there is nothing to aggregate: D left join the groups, with the value for no rows
    top-k                       row_number() for each d, and a filter
    values                      a projection of D for each row
    recursion                   refused: its steps would have to carry D

It is correct for every d that D has too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Recursion,
    TopK,
    UnionAll,
    Values,
    Window,
    col,
    free_columns,
    null_safe,
    renamed,
)
from trickle.sql.rewrites.conditions import all_of, conjuncts
from trickle.sql.rewrites.copy import fresh_copy, renamed_tree
from trickle.sql.rewrites.empty import exactly_one_row, groups_or_empty
from trickle.sql.rewrites.keyed import first_of_each, window_over
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.pull import Flat


def flatten(left: Operator, right: Operator, names: Names) -> Flat:
    """The subquery for every row of the left at once."""
    used = free_columns(right)
    values, pairs = distinct_values(left, [name for name in left.columns if name in used], names)
    tree = _Domain(values, names).pushed(renamed_tree(right, pairs))
    back = (exp.NullSafeEQ(this=col(name), expression=col(key)) for name, key in pairs.items())
    return Flat(tree, tuple(back))


def distinct_values(left: Operator, columns: Sequence[str], names: Names) -> tuple[Aggregate, dict[str, str]]:
    """D: the distinct values of some columns, and what the columns are called in it."""
    source, called = _source(left, columns)
    copy, fresh = fresh_copy(source, names)
    pairs = {name: fresh[called[name]] for name in columns}
    return Aggregate(copy, tuple(dict.fromkeys(pairs.values()))), pairs


def _source(tree: Operator, columns: Sequence[str]) -> tuple[Operator, dict[str, str]]:
    """The lowest operator that has the same values in these columns, and what they are called there.

    It keeps D small as a tree: a chain of subqueries would otherwise double with every one.
    """
    called = {name: name for name in columns}
    while True:
        match tree:
            case Project():
                passed = {output.name: output.value.name for output in tree.outputs if output.is_plain}
                if not set(called.values()) <= passed.keys():
                    return tree, called
                called = {name: passed[inner] for name, inner in called.items()}
                tree = tree.input
            case Join() if set(called.values()) <= set(tree.left.columns) and _keeps_left(tree):
                tree = tree.left
            case Window() if set(called.values()) <= set(tree.input.columns):
                tree = tree.input
            case _:
                return tree, called


def _keeps_left(node: Join) -> bool:
    """Whether each row of the left survives the join: so it does in those that unnesting makes."""
    match node.kind:
        case JoinKind.LEFT:
            return True
        case JoinKind.INNER if node.condition is None:
            return exactly_one_row(node.right)
        case JoinKind.INNER:
            # A join back on D. Another one of this form makes D larger than it need be, and no result wrong.
            return all(isinstance(part, exp.NullSafeEQ) for part in conjuncts(node.condition))
        case JoinKind.SEMI | JoinKind.ANTI:
            return False


@dataclass(frozen=True)
class _Domain:
    tree: Operator
    names: Names

    @property
    def columns(self) -> tuple[str, ...]:
        return self.tree.columns

    def copy(self) -> tuple[_Domain, dict[str, str]]:
        tree, fresh = fresh_copy(self.tree, self.names)
        return _Domain(tree, self.names), {name: fresh[name] for name in self.columns}

    def used_by(self, node: Operator) -> bool:
        return not free_columns(node).isdisjoint(self.columns)

    def pushed(self, node: Operator) -> Operator:  # noqa: C901 - one case for each operator
        """``D >< node``: the columns of both, in some order."""
        if not self.used_by(node):
            return Join(JoinKind.INNER, self.tree, node)
        match node:
            case Filter():
                return Filter(self.pushed(node.input), node.condition)
            case Project():
                return Project(self.pushed(node.input), (*node.outputs, *Output.keep(self.columns)))
            case Generate():
                return replace(node, input=self.pushed(node.input))
            case UnionAll():
                order = Output.keep((*node.columns, *self.columns))
                return UnionAll(tuple(Project(self.pushed(part), order) for part in node.parts))
            case Join():
                return self.join(node)
            case Aggregate() if node.keys:
                return Aggregate(self.pushed(node.input), (*self.columns, *node.keys), node.calls)
            case Aggregate():
                return self.one_group(node)
            case Window():
                partition = (*self.columns, *node.partition)
                calls = tuple(Output(call.name, window_over(call.value, partition)) for call in node.calls)
                return Window(self.pushed(node.input), partition, calls)
            case TopK():
                return first_of_each(self.pushed(node.input), self.columns, node, self.names)
            case Values():
                rows = [tuple(map(Output, node.names, row)) for row in node.rows]
                return UnionAll(tuple(Project(self.tree, (*row, *Output.keep(self.columns))) for row in rows))
            case Recursion():
                raise UnsupportedQuery(
                    f"the recursive query {node.name!r} uses columns of the query around it",
                    hint="move the recursive query into WITH at the top, and join it",
                )
            case _:
                raise TypeError(type(node))

    def join(self, node: Join) -> Operator:
        to_right = self.used_by(node.right)
        if node.kind is JoinKind.INNER and not self.used_by(node.left) and to_right:
            return replace(node, right=self.pushed(node.right))
        left = self.pushed(node.left)
        if not to_right:
            return replace(node, left=left)
        other, pairs = self.copy()
        right = other.pushed(renamed_tree(node.right, pairs))
        condition = all_of((*conjuncts(null_safe(pairs.items())), *conjuncts(node.condition)))
        both = replace(node, left=left, right=right, condition=condition)
        return Project(both, Output.keep((*node.columns, *self.columns))) if node.kind.keeps_right else both

    def one_group(self, node: Aggregate) -> Operator:
        other, pairs = self.copy()
        below = other.pushed(renamed_tree(node.input, pairs))
        called = {call.name: self.names.fresh(call.name) for call in node.calls}
        calls = tuple(Output(called[call.name], renamed(call.value, pairs)) for call in node.calls)
        groups = Aggregate(below, other.columns, calls)
        every = Join(JoinKind.LEFT, self.tree, groups, null_safe(pairs.items()))
        return Project(every, (*Output.keep(self.columns), *groups_or_empty(node, called)))
