"""Moves each conjunct of a filter as far down as it means the same there.

    project            below it, with the values in place of the columns (unless they are long, or volatile)
    inner join         to the side that has all its columns; what needs both sides is a condition of the join
    left join          to the left side; of the join's own condition, what needs only the right goes there
    semi, anti join    to the left side; of the condition, what needs only the right goes there, and for a semi join
                       what needs only the left
    union all          into every part
    aggregate, window  below, when it needs only keys: it keeps or drops whole groups
    generate           below, when it needs nothing that is generated
    top-k, recursion   not: they would see other rows

So ``a CROSS JOIN b WHERE a.x = b.y`` becomes an inner join on ``a.x = b.y``. A conjunct with a volatile function stays
where it is, and so does one that may raise an error on purpose, or that names no column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    substituted,
)
from trickle.sql.rewrites.conditions import all_of, conjuncts, is_volatile
from trickle.sql.rewrites.simplify import may_substitute

# A value of more nodes than this is not computed a second time only to filter earlier.
_LONG = 16


def push_filters(tree: Operator) -> Operator:
    """The same relation with its filters as low as they can be."""
    return _pushed(tree, [])


def _pushed(node: Operator, parts: Sequence[Expr]) -> Operator:
    match node:
        case Filter():
            own = conjuncts(node.condition)
            moving = [part for part in own if _may_move(part)]
            if len(moving) == len(own):
                return _pushed(node.input, [*own, *parts])
            fixed = [part for part in own if not _may_move(part)]
            return _above(Filter(_pushed(node.input, moving), _and(fixed)), parts)
        case Project():
            return _project(node, parts)
        case Join():
            return _join(node, parts)
        case UnionAll():
            return UnionAll(tuple(_pushed(part, parts) for part in node.parts))
        case Aggregate():
            return _below(node, parts, set(node.keys))
        case Window():
            return _below(node, parts, set(node.partition))
        case Generate():
            return _below(node, parts, set(node.input.columns))
        case _:
            return _above(node.with_inputs([_pushed(child, []) for child in node.inputs]), parts)


def _may_move(part: Expr) -> bool:
    calls = (call.name.lower() for call in part.find_all(exp.Anonymous))
    return bool(column_names(part)) and not is_volatile(part) and "raise_error" not in calls


def _and(parts: Iterable[Expr]) -> Expr:
    return all_of(parts) or exp.true()


def _above(node: Operator, parts: Sequence[Expr]) -> Operator:
    return Filter(node, _and(parts)) if parts else node


def _split(parts: Iterable[Expr], columns: AbstractSet[str]) -> tuple[list[Expr], list[Expr]]:
    """Those that need only these columns, and the others."""
    inside: list[Expr] = []
    others: list[Expr] = []
    for part in parts:
        (inside if _may_move(part) and column_names(part) <= columns else others).append(part)
    return inside, others


def _below(node: Operator, parts: Sequence[Expr], columns: AbstractSet[str]) -> Operator:
    inside, others = _split(parts, columns)
    (child,) = node.inputs
    return _above(node.with_inputs([_pushed(child, inside)]), others)


def _project(node: Project, parts: Sequence[Expr]) -> Operator:
    values = {output.name: output.value for output in node.outputs}
    inside: list[Expr] = []
    others: list[Expr] = []
    for part in parts:
        used = {name: values[name] for name in column_names(part) if name in values}
        moved = substituted(part, used)
        light = all(sum(1 for _ in value.walk()) <= _LONG for value in used.values())
        if light and may_substitute(part, used) and _may_move(moved):
            inside.append(moved)
        else:
            others.append(part)
    return _above(Project(_pushed(node.input, inside), node.outputs), others)


def _join(node: Join, parts: Sequence[Expr]) -> Operator:
    left, right = set(node.left.columns), set(node.right.columns)
    if node.kind is JoinKind.INNER:
        pool = [*conjuncts(node.condition), *parts]
        to_left, rest = _split(pool, left)
        to_right, rest = _split(rest, right)
        on, above = _split(rest, left | right)
        # Volatile conjuncts of the condition stay there; of the filter above, above.
        own = [part for part in above if part in conjuncts(node.condition)]
        above = [part for part in above if part not in own]
        condition = all_of((*on, *own))
    else:
        to_left, above = _split(parts, left)
        to_right, own = _split(conjuncts(node.condition), right)
        if node.kind is JoinKind.SEMI:
            more, own = _split(own, left)
            to_left += more
        condition = all_of(own)
    joined = replace(node, left=_pushed(node.left, to_left), right=_pushed(node.right, to_right), condition=condition)
    return _above(joined, above)
