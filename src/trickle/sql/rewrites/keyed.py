"""Operators over keys that a subquery is looked up by: columns for the keys, and the first rows of each key."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.operators import Expr, Filter, Operator, Output, Project, TopK, Window, WindowOrder, col
from trickle.sql.rewrites.conditions import Match
from trickle.sql.rewrites.names import Names


def with_keys(tree: Operator, matches: Sequence[Match], names: Names) -> tuple[Operator, tuple[str, ...]]:
    """The tree with a column for the inner side of each match, and these columns."""
    computed: dict[Expr, str] = {}
    keys: list[str] = []
    for match in matches:
        inner = match.inner
        if not isinstance(inner, exp.Column) and inner not in computed:
            computed[inner] = names.fresh_for(inner)
        keys.append(inner.name if isinstance(inner, exp.Column) else computed[inner])
    if computed:
        added = (Output(name, value) for value, name in computed.items())
        tree = Project(tree, (*Output.keep(tree.columns), *added))
    return tree, tuple(keys)


def joined_on(matches: Sequence[Match], keys: Sequence[str]) -> tuple[Expr, ...]:
    """The conjuncts that look a key up."""
    return tuple(match.on(col(key)) for match, key in zip(matches, keys, strict=True))


def merged(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """The names of both, each once."""
    return tuple(dict.fromkeys((*first, *second)))


def window_over(call: Expr, partition: Sequence[str]) -> exp.Window:
    """A window function with another partition."""
    copy = call.copy()
    assert isinstance(copy, exp.Window)
    copy.set("partition_by", [col(name) for name in partition])
    return copy


def first_of_each(tree: Operator, keys: Sequence[str], top: TopK, names: Names) -> Operator:
    """The first rows of every key, in place of the first rows of all."""
    number = names.fresh("place")
    window = exp.Window(
        this=exp.Anonymous(this="row_number", expressions=[]),
        partition_by=[col(key) for key in keys],
        order=exp.Order(expressions=[_ordered(term) for term in top.order]),
        over="OVER",
    )
    numbered = Window(tree, tuple(keys), (Output(number, window),))
    conditions: list[Expr] = []
    if top.offset:
        conditions.append(exp.GT(this=col(number), expression=exp.Literal.number(top.offset)))
    if top.limit is not None:
        last = exp.Literal.number(top.offset + top.limit)
        conditions.append(exp.LTE(this=col(number), expression=last))
    if not conditions:
        return tree
    return Project(Filter(numbered, exp.and_(*conditions)), Output.keep(tree.columns))


def _ordered(term: WindowOrder) -> exp.Ordered:
    return exp.Ordered(this=col(term.name), desc=term.descending, nulls_first=term.nulls_first)
