"""Subqueries that have one row for every row of the outside, and those that only rearrange that row.

``attached(L, R)`` is L with the columns of R's only row. For an aggregate without keys:

    L left join (R's input without its correlated conjuncts, grouped by the inner sides of these) on the conjuncts,

and where no group is found, the value of the function for no rows. Projections are computed above the join.
``expanded(L, R)`` goes further: R may filter or generate rows of its one row, and L's rows do the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trickle.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    Values,
    column_names,
    free_columns,
)
from trickle.sql.rewrites import domain
from trickle.sql.rewrites.conditions import all_of, matches_of
from trickle.sql.rewrites.empty import exactly_one_row, groups_or_empty
from trickle.sql.rewrites.keyed import joined_on, with_keys
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.pull import pull


def attached(left: Operator, right: Operator, names: Names) -> Operator:
    """Each row of the left with the only row that the right has for it."""
    return _Attach(left.columns, names).tree(left, right)


def expanded(left: Operator, right: Operator, names: Names) -> Operator | None:
    """Each row of the left with each row that the right makes of it alone; None when the right reads more than one."""
    if exactly_one_row(right):
        return attached(left, right, names)
    match right:
        case Filter():
            below = expanded(left, right.input, names)
            return below and Filter(below, right.condition)
        case Project():
            below = expanded(left, right.input, names)
            return below and Project(below, (*Output.keep(left.columns), *right.outputs))
        case Generate():
            below = expanded(left, right.input, names)
            return below and replace(right, input=below)
        case _:
            return None


def expanded_outer(left: Operator, right: Operator, names: Names) -> Operator | None:
    """The same, where a row of which the right makes nothing stays, with NULLs: LEFT JOIN LATERAL explode(...)."""
    match right:
        case Project() if all(output.is_plain for output in right.outputs):
            below = expanded_outer(left, right.input, names)
            return below and Project(below, (*Output.keep(left.columns), *right.outputs))
        case Generate() if exactly_one_row(right.input) and not right.input.columns:
            return replace(right, input=attached(left, right.input, names), outer=True)
        case _:
            return None


@dataclass(frozen=True)
class _Attach:
    outer: tuple[str, ...]
    names: Names

    def tree(self, left: Operator, right: Operator) -> Operator:
        if free_columns(right).isdisjoint(self.outer):
            only_row = isinstance(right, Values) and not right.names
            return left if only_row else Join(JoinKind.INNER, left, right)
        match right:
            case Project():
                return Project(self.tree(left, right.input), (*Output.keep(left.columns), *right.outputs))
            case Values():
                outputs = map(Output, right.names, right.rows[0])
                return Project(left, (*Output.keep(left.columns), *outputs))
            case Join(kind=JoinKind.INNER, condition=None):
                return self.tree(self.tree(left, right.left), right.right)
            case Aggregate():
                return self.group(left, right) or self.anything(left, right)
            case _:
                return self.anything(left, right)

    def group(self, left: Operator, right: Aggregate) -> Operator | None:
        if any(column_names(call) & set(self.outer) for call in right.expressions):
            return None
        below = pull(right.input, set(self.outer), self.names, existential=False)
        if below is None or right.used & below.values.keys():
            return None
        matches = matches_of(below.conjuncts, set(below.tree.columns), self.names.is_exact)
        if matches is None:
            return None
        if not matches:
            return Join(JoinKind.INNER, left, Aggregate(below.tree, (), right.calls))
        tree, keys = with_keys(below.tree, matches, self.names)
        called = {call.name: self.names.fresh(call.name) for call in right.calls}
        calls = tuple(Output(called[call.name], call.value) for call in right.calls)
        groups = Aggregate(tree, tuple(dict.fromkeys(keys)), calls)
        joined = Join(JoinKind.LEFT, left, groups, all_of(joined_on(matches, keys)))
        return Project(joined, (*Output.keep(left.columns), *groups_or_empty(right, called)))

    def anything(self, left: Operator, right: Operator) -> Operator:
        flat = domain.flatten(left, right, self.names)
        joined = Join(JoinKind.INNER, left, flat.tree, all_of(flat.conjuncts))
        return Project(joined, Output.keep((*left.columns, *right.columns)))
