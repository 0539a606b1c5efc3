"""A small set of keys restricts a relation where its rows come from, not after they were made.

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

from trickle.delta.optimize.join_order import is_small
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


def push_keys(tree: Operator) -> Operator:
    """The tree with its restrictions by small sets of keys as deep as they go."""
    if isinstance(tree, Join) and tree.kind is JoinKind.SEMI and tree.condition is not None and is_small(tree.right):
        return _pushed(push_keys(tree.left), push_keys(tree.right), tree.condition)
    inputs = [push_keys(child) for child in tree.inputs]
    return tree.with_inputs(inputs) if inputs else tree


def _pushed(rows: Operator, keys: Operator, condition: Expr) -> Operator:
    used = column_names(condition) - frozenset(keys.columns)
    match rows:
        case Filter():
            return replace(rows, input=_pushed(rows.input, keys, condition))
        case Generate() if used <= frozenset(rows.input.columns):
            return replace(rows, input=_pushed(rows.input, keys, condition))
        case Aggregate() if used and used <= frozenset(rows.keys):
            return replace(rows, input=_pushed(rows.input, keys, condition))
        case Window() if used and used <= frozenset(rows.partition):
            return replace(rows, input=_pushed(rows.input, keys, condition))
        case Project():
            below = {output.name: output.value.name for output in rows.outputs if output.is_plain}
            if used <= below.keys() and not frozenset(rows.input.columns) & frozenset(keys.columns):
                names = {name: below[name] for name in used}
                return replace(rows, input=_pushed(rows.input, keys, renamed(condition, names)))
        case UnionAll():
            return UnionAll(tuple(_pushed(part, keys, condition) for part in rows.parts))
        case Join():
            if used <= frozenset(rows.left.columns):
                return replace(rows, left=_pushed(rows.left, keys, condition))
            if rows.kind is JoinKind.INNER and used <= frozenset(rows.right.columns):
                return replace(rows, right=_pushed(rows.right, keys, condition))
        case _:
            pass
    return Join(JoinKind.SEMI, rows, keys, condition, small="right")
