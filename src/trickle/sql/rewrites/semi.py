"""A semi join moves to where the rows that it leaves out come from.

    (A semi B) semi K  on columns of A        becomes    (A semi K) semi B
    (A join B) semi K  on columns of A        becomes    (A semi K) join B
    (A left join B) semi K  on columns of A   becomes    (A semi K) left join B
    group by k over (Q semi K)                in place of    (group by k over Q) semi K, on columns of k

and so through filters, projections, unions, generators and windows whose partition has the columns. Safe because a
semi join only leaves out rows, by values that these pass on unchanged: whether a row is left out does not depend on
when that is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

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
    renamed,
)


def semi_joined(rows: Operator, keys: Operator, condition: Expr, *, small: Literal["right"] | None = None) -> Operator:
    """The rows for which there is a key, asked as deep as that can be; ``small`` is a hint for the join."""
    used = column_names(condition) - frozenset(keys.columns)
    match rows:
        case Filter():
            return replace(rows, input=semi_joined(rows.input, keys, condition, small=small))
        case Generate() if used <= frozenset(rows.input.columns):
            return replace(rows, input=semi_joined(rows.input, keys, condition, small=small))
        case Aggregate() if used and used <= frozenset(rows.keys):
            return replace(rows, input=semi_joined(rows.input, keys, condition, small=small))
        case Window() if used and used <= frozenset(rows.partition):
            return replace(rows, input=semi_joined(rows.input, keys, condition, small=small))
        case Project():
            below = {output.name: output.value.name for output in rows.outputs if output.is_plain}
            if used <= below.keys() and not frozenset(rows.input.columns) & frozenset(keys.columns):
                names = {name: below[name] for name in used}
                return replace(rows, input=semi_joined(rows.input, keys, renamed(condition, names), small=small))
        case UnionAll():
            return UnionAll(tuple(semi_joined(part, keys, condition, small=small) for part in rows.parts))
        case Join():
            if used <= frozenset(rows.left.columns):
                return replace(rows, left=semi_joined(rows.left, keys, condition, small=small))
            if rows.kind is JoinKind.INNER and used <= frozenset(rows.right.columns):
                return replace(rows, right=semi_joined(rows.right, keys, condition, small=small))
        case _:
            pass
    return Join(JoinKind.SEMI, rows, keys, condition, small=small)
