"""Subqueries become joins: afterwards no ``Apply`` is left.

From the innermost subquery outwards. For a subquery, in this order:

1. It has one row for each row of the left, or makes rows of that row alone (``attach``): its columns are attached.
2. Its correlated conjuncts can be taken out (``pull``): what remains is joined on them.
3. Anything else (``domain``): it is computed for all values that the left has, and joined back on these.

Then, with R the subquery without correlation and c its conjuncts and the apply's condition:

    inner, left, semi, anti     the join of that kind on c
    mark                        see ``marks``
    scalar                      left join on c. When R may have two rows for one row of the left, they are grouped by
                                what they are looked up by, and a group of more than one row raises an error where it
                                is used
"""

from __future__ import annotations

from types import MappingProxyType
from typing import assert_never

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Apply,
    ApplyKind,
    Expr,
    Filter,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    col,
    free_columns,
    transformed,
)
from trickle.sql.rewrites import domain
from trickle.sql.rewrites.attach import attached, expanded, expanded_outer
from trickle.sql.rewrites.conditions import Match, all_of, conjuncts, matches_of, resolved
from trickle.sql.rewrites.empty import at_most_one_row, exactly_one_row
from trickle.sql.rewrites.keyed import joined_on, with_keys
from trickle.sql.rewrites.kinds import Schemas, are_typed, kinds_of
from trickle.sql.rewrites.marks import marked
from trickle.sql.rewrites.names import Names
from trickle.sql.rewrites.pull import Flat, pull

MORE_THAN_ONE_ROW = "a scalar subquery gave more than one row"


def decorrelate(tree: Operator, schemas: Schemas = MappingProxyType({})) -> Operator:
    """The same relation without ``Apply``."""
    names = Names.of(tree)
    names.kinds = kinds_of(tree, schemas) if are_typed(schemas) else None
    return transformed(tree, lambda node: _joined(node, names) if isinstance(node, Apply) else node)


def _joined(node: Apply, names: Names) -> Operator:
    if exactly_one_row(node.right):
        return _of_one_row(node, attached(node.left, node.right, names))
    match node.kind:
        case ApplyKind.INNER:
            every = expanded(node.left, node.right, names)
            return _filtered(every, node.condition) if every else _inner(node, names)
        case ApplyKind.LEFT:
            every = None if node.condition is not None else expanded_outer(node.left, node.right, names)
            return every or _left(node, names)
        case ApplyKind.SEMI | ApplyKind.ANTI:
            flat = _flat(node, names, existential=True)
            condition = all_of((*flat.conjuncts, *_condition(node, flat)))
            return Join(JoinKind(node.kind.value), node.left, flat.tree, condition)
        case ApplyKind.MARK:
            assert node.output is not None
            flat = _flat(node, names, existential=True)
            return marked(node.left, flat, node.condition, node.output, names)
        case ApplyKind.SCALAR:
            return _scalar(node, names)
        case _:
            assert_never(node.kind)


def _flat(node: Apply, names: Names, *, existential: bool = False, plain: bool = False) -> Flat:
    """The subquery without correlation; ``plain``: with all its columns computed inside."""
    if free_columns(node.right).isdisjoint(node.left.columns):
        return Flat(node.right)
    flat = pull(node.right, set(node.left.columns), names, existential=existential)
    if flat is None or (plain and flat.values):
        return domain.flatten(node.left, node.right, names)
    return flat


def _condition(node: Apply, flat: Flat) -> list[Expr]:
    return [resolved(part, flat.values) for part in conjuncts(node.condition)]


def _filtered(tree: Operator, condition: Expr | None) -> Operator:
    return tree if condition is None else Filter(tree, condition)


def _of_one_row(node: Apply, tree: Operator) -> Operator:
    """The apply of a subquery that has one row, when its columns are attached to the left's already."""
    kept = Output.keep(node.left.columns)
    condition = node.condition
    match node.kind:
        case ApplyKind.INNER:
            return _filtered(tree, condition)
        case ApplyKind.LEFT:
            if condition is None:
                return tree
            values = (Output(name, exp.Case().when(condition, col(name))) for name in node.right.columns)
            return Project(tree, (*kept, *values))
        case ApplyKind.SEMI:
            return node.left if condition is None else Project(Filter(tree, condition), kept)
        case ApplyKind.ANTI:
            wanted = exp.Not(this=exp.Is(this=exp.paren(condition or exp.true()), expression=exp.true()))
            return Project(Filter(tree, wanted), kept)
        case ApplyKind.MARK:
            assert node.output is not None
            return Project(tree, (*kept, Output(node.output, condition or exp.true())))
        case ApplyKind.SCALAR:
            assert node.output is not None
            return Project(tree, (*kept, Output(node.output, col(node.right.columns[0]))))
        case _:
            assert_never(node.kind)


def _inner(node: Apply, names: Names) -> Operator:
    flat = _flat(node, names)
    joined = Join(JoinKind.INNER, node.left, flat.tree, all_of((*flat.conjuncts, *_condition(node, flat))))
    values = (Output(name, flat.values.get(name, col(name))) for name in node.right.columns)
    return Project(joined, (*Output.keep(node.left.columns), *values))


def _left(node: Apply, names: Names) -> Operator:
    flat = _flat(node, names, plain=True)
    joined = Join(JoinKind.LEFT, node.left, flat.tree, all_of((*flat.conjuncts, *_condition(node, flat))))
    return Project(joined, Output.keep(node.columns))


def _scalar(node: Apply, names: Names) -> Operator:
    assert node.output is not None
    flat = _flat(node, names, plain=True)
    (value,) = node.right.columns
    kept = Output.keep(node.left.columns)
    matches = matches_of(flat.conjuncts, set(flat.tree.columns), names.is_exact)
    if at_most_one_row(node.right) or _has_unique(flat.tree, matches):
        joined = Join(JoinKind.LEFT, node.left, flat.tree, all_of(flat.conjuncts))
        return Project(joined, (*kept, Output(node.output, col(value))))
    if matches is None:
        flat = domain.flatten(node.left, node.right, names)
        matches = matches_of(flat.conjuncts, set(flat.tree.columns)) or []
    tree, keys = with_keys(flat.tree, matches, names)
    only, rows = names.fresh(value), names.fresh("rows")
    calls = (
        Output(only, exp.Anonymous(this="max", expressions=[col(value)])),
        Output(rows, exp.Anonymous(this="count", expressions=[exp.Star()])),
    )
    groups = Aggregate(tree, tuple(dict.fromkeys(keys)), calls)
    kind = JoinKind.LEFT if keys else JoinKind.INNER
    joined = Join(kind, node.left, groups, all_of(joined_on(matches, keys)))
    error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(MORE_THAN_ONE_ROW)])
    checked = exp.Case().when(exp.GT(this=col(rows), expression=exp.Literal.number(1)), error).else_(col(only))
    return Project(joined, (*kept, Output(node.output, checked)))


def _has_unique(tree: Operator, matches: list[Match] | None) -> bool:
    """Whether the tree has at most one row for the values that it is looked up by."""
    keys = {match.inner.name for match in matches or () if isinstance(match.inner, exp.Column)}
    while isinstance(tree, Filter | Project):
        tree = tree.input
    return isinstance(tree, Aggregate) and keys >= set(tree.keys)
