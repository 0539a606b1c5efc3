"""NOT, moved inwards to the subqueries below it.

    NOT (a AND b)  is  NOT a OR NOT b          NOT NOT a   is  a
    NOT (a OR b)   is  NOT a AND NOT b         a = false   is  NOT a          a = true   is  a

Both sides are equal in three-valued logic. It is done where there are subqueries, for two reasons: ``NOT (a IN q OR
b)`` becomes conditions that each drop rows on their own; and Spark does it before it gives IN a value (see
``subqueries``).
"""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Expr
from trickle.sql.build.calls import function_name

SUBQUERY = "__trickle_subquery"


def has_subquery(expression: Expr) -> bool:
    """Whether an expression holds a subquery that is not yet an apply."""
    return any(map(is_subquery, expression.find_all(exp.Anonymous)))


def is_subquery(node: Expr) -> bool:
    """Whether a node stands for a subquery."""
    return function_name(node) == SUBQUERY


def negations_inwards(expression: Expr) -> Expr:
    """The same condition with NOT directly at its subqueries."""
    return expression.copy().transform(_moved, copy=False)


def _moved(node: Expr) -> Expr:
    if not isinstance(node, exp.Not | exp.EQ) or not has_subquery(node):
        return node
    condition, holds = _stripped(node)
    if isinstance(condition, exp.And | exp.Or) and not holds:
        kind = exp.Or if isinstance(condition, exp.And) else exp.And
        sides = (exp.Not(this=exp.paren(side)) for side in (condition.this, condition.expression))
        left, right = map(negations_inwards, sides)
        return exp.paren(kind(this=exp.paren(left), expression=exp.paren(right)))
    if condition is node:
        return node
    inner = negations_inwards(condition)
    return exp.paren(inner) if holds else exp.Not(this=exp.paren(inner))


def _stripped(node: Expr) -> tuple[Expr, bool]:
    """The condition below NOT, ``= true`` and ``= false``, and whether it or its opposite is meant."""
    holds = True
    while True:
        node = node.unnest()
        if isinstance(node, exp.Not):
            node, holds = node.this, not holds
        elif isinstance(node, exp.EQ) and isinstance(node.expression, exp.Boolean):
            node, holds = node.this, holds == node.expression.this
        else:
            return node, holds
