"""A left join whose missing rows are dropped further up is an inner join.

A column is *wanted* where every row that has NULL in it is dropped above: by a conjunct that is not true of NULL
(``x > 1``, ``x = y``, ``x IS NOT NULL``), in a filter or in the condition of an inner or semi join. When a column of
the right side of a left join is wanted, the rows that found nothing do not survive.

Wanted columns pass through projections (a computed column is wanted: so is all that makes it NULL), joins (to the side
that is kept), unions, generators, the keys of aggregates and of windows. They do not pass through top-k or recursion.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from sqlglot import exp

from trickle.operators import (
    Aggregate,
    Expr,
    Filter,
    Generate,
    Join,
    JoinKind,
    Operator,
    Project,
    UnionAll,
    Window,
    column_names,
)

# NULL when a part of them is NULL.
_STRICT = (
    exp.Add,
    exp.Cast,
    exp.DPipe,
    exp.Div,
    exp.Dot,
    exp.EQ,
    exp.GT,
    exp.GTE,
    exp.IntDiv,
    exp.LT,
    exp.LTE,
    exp.Like,
    exp.Literal,
    exp.Mod,
    exp.Mul,
    exp.NEQ,
    exp.Neg,
    exp.Not,
    exp.Paren,
    exp.Sub,
)


def strengthen(tree: Operator) -> Operator:
    """The same relation with inner joins for left joins, where nothing is lost."""
    return _stronger(tree, frozenset())


def strict_columns(value: Expr) -> frozenset[str]:
    """Columns that make the value NULL when they are NULL.

    >>> from sqlglot import parse_one
    >>> sorted(strict_columns(parse_one("a + coalesce(b, 0) > CAST(c AS INT)")))
    ['a', 'c']
    """
    if isinstance(value, exp.Column):
        return column_names(value)
    if isinstance(value, exp.Between | exp.In):
        # A bound or an item that is NULL may leave it false.
        return strict_columns(value.this)
    if not isinstance(value, _STRICT):
        return frozenset()
    return frozenset().union(*(strict_columns(part) for part in value.iter_expressions()))


def rejecting(condition: Expr | None) -> frozenset[str]:
    """Columns that keep the condition from being true when they are NULL.

    >>> from sqlglot import parse_one
    >>> sorted(rejecting(parse_one("a > 1 AND (b = 1 OR b = c) AND NOT d IS NULL AND e IS NULL")))
    ['a', 'b', 'd']
    """
    match condition:
        case None:
            return frozenset()
        case exp.And():
            return rejecting(condition.this) | rejecting(condition.expression)
        case exp.Or():
            return rejecting(condition.this) & rejecting(condition.expression)
        case exp.Paren():
            return rejecting(condition.this)
        case exp.Not(this=exp.Is() as test) if isinstance(test.expression, exp.Null):
            return strict_columns(test.this)
        case _:
            return strict_columns(condition)


def _stronger(node: Operator, wanted: AbstractSet[str]) -> Operator:
    match node:
        case Filter():
            below = wanted | rejecting(node.condition)
        case Project():
            below = frozenset().union(*(strict_columns(o.value) for o in node.outputs if o.name in wanted))
        case Aggregate():
            below = frozenset(wanted & set(node.keys))
        case Window():
            below = frozenset(wanted & set(node.partition))
        case Generate():
            below = frozenset(wanted & set(node.input.columns))
        case UnionAll():
            below = frozenset(wanted)
        case Join():
            return _join(node, wanted)
        case _:
            below = frozenset()
    return node.with_inputs([_stronger(child, below) for child in node.inputs])


def _join(node: Join, wanted: AbstractSet[str]) -> Operator:
    if node.kind is JoinKind.LEFT and wanted & set(node.right.columns):
        node = replace(node, kind=JoinKind.INNER)
    from_condition = rejecting(node.condition)
    match node.kind:
        case JoinKind.INNER:
            left = right = frozenset(wanted | from_condition)
        case JoinKind.SEMI:
            left, right = frozenset(wanted | from_condition), from_condition
        case JoinKind.LEFT | JoinKind.ANTI:
            left, right = frozenset(wanted), from_condition
    return replace(node, left=_stronger(node.left, left), right=_stronger(node.right, right))
