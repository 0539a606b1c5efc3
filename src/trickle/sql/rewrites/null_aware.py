"""NOT IN by equality: the anti join that it stands for has a condition that no index or hash can serve.

``x NOT IN (SELECT y FROM R)`` is an anti join on ``coalesce(x = y, true)``: a row is dropped when it finds an equal y,
or cannot know. With k for the other conjuncts, which must be matches ``inner = outer``, the same rows are dropped by

    (L anti R on k AND x = y)  anti (R where y IS NULL) on k  anti (DISTINCT k of R) on k AND x IS NULL

since ``x = y`` is NULL just when one of the two is. The second and third seldom find anything, and a change to R
touches only rows of L with its value, unless it is NULL. Several columns at once (``(a, b) NOT IN ...``) stay as they
are: one column may be NULL and another one different.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Aggregate, Expr, Filter, Join, JoinKind, Operator, Output, Project, transformed
from trickle.sql.rewrites.conditions import (
    Match,
    all_of,
    conjuncts,
    is_null,
    is_volatile,
    match_of,
    matches_of,
    renamed_match,
)
from trickle.sql.rewrites.copy import fresh_copy
from trickle.sql.rewrites.keyed import joined_on, with_keys
from trickle.sql.rewrites.names import Names


def null_aware(tree: Operator) -> Operator:
    """The same relation with three anti joins for each NOT IN of one column."""
    names = Names.of(tree)
    return transformed(tree, lambda node: _split(node, names) if isinstance(node, Join) else node)


def _split(node: Join, names: Names) -> Operator:
    parts = conjuncts(node.condition)
    compared = [(part, inner) for part in parts if (inner := _or_unknown(part)) is not None]
    if node.kind is not JoinKind.ANTI or len(compared) != 1 or any(map(is_volatile, parts)):
        return node
    ((conjunct, comparison),) = compared
    inside = set(node.right.columns)
    match = match_of(comparison, inside)
    others = matches_of((part for part in parts if part is not conjunct), inside)
    if match is None or match.null_safe or others is None:
        return node
    equal = Join(
        JoinKind.ANTI, node.left, node.right, all_of([*(each.on(each.inner) for each in others), match.on(match.inner)])
    )
    return _unknown_left(_unknown_right(equal, node.right, others, match, names), node.right, others, match, names)


def _or_unknown(part: Expr) -> Expr | None:
    """c, of ``coalesce(c, true)``."""
    match part:
        case exp.Anonymous(expressions=[exp.EQ() as inner, exp.Boolean(this=True)]) if part.name.lower() == "coalesce":
            return inner
        case _:
            return None


def _unknown_right(tree: Operator, right: Operator, others: list[Match], match: Match, names: Names) -> Operator:
    copy, fresh = fresh_copy(right, names)
    keys = [renamed_match(each, fresh) for each in others]
    unknown = Filter(copy, is_null(renamed_match(match, fresh).inner))
    return Join(JoinKind.ANTI, tree, unknown, all_of(each.on(each.inner) for each in keys))


def _unknown_left(tree: Operator, right: Operator, others: list[Match], match: Match, names: Names) -> Operator:
    copy, fresh = fresh_copy(right, names)
    renamed = [renamed_match(each, fresh) for each in others]
    below, keys = with_keys(copy, renamed, names)
    if not keys:
        keys = (names.fresh("some"),)
        below = Project(copy, (Output(keys[0], exp.true()),))
    some = Aggregate(below, tuple(dict.fromkeys(keys)))
    condition = all_of((*joined_on(renamed, keys if renamed else ()), is_null(match.outer)))
    return Join(JoinKind.ANTI, tree, some, condition)
