"""UNION, INTERSECT and EXCEPT.

Columns go by place, under the names of the first part. With l and r for how often a row is on each side, the rows of

    UNION ALL       l + r copies: a plain union
    UNION           1 copy: its groups
    INTERSECT       1 copy where l > 0 and r > 0            INTERSECT ALL    min(l, r) copies
    EXCEPT          1 copy where l > 0 and r = 0            EXCEPT ALL       l - r copies

come from one aggregate over the union of both sides, each with a column that says where a row is from. NULLs are
grouped together, as these operations want it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.errors import UserError
from trickle.operators import Aggregate, Expr, Filter, Generate, Operator, Output, Project, UnionAll, col
from trickle.sql.build.calls import call
from trickle.sql.build.context import Built, Context
from trickle.sql.build.scope import Scope, Visible


def set_operation(context: Context, query: exp.SetOperation, scope: Scope) -> Built:
    """A set operation, without its ORDER BY and LIMIT."""
    if isinstance(query, exp.Union):
        return _union(context, query, scope)
    left, right = (context.query(context, side, scope) for side in (query.this, query.expression))
    _check_columns(left, right)
    return _counted(context, query, left, right)


def _union(context: Context, query: exp.Union, scope: Scope) -> Built:
    by_name = bool(query.args.get("by_name"))
    parts = [context.query(context, side, scope) for side in _sides(query)]
    if by_name:
        parts = _by_name(parts)
    for part in parts[1:]:
        _check_columns(parts[0], part)
    columns = _shared_columns(context, parts[0])
    tree: Operator = UnionAll(tuple(_renamed(part, columns) for part in parts))
    if query.args.get("distinct"):
        tree = Aggregate(tree, tree.columns)
    return Built(tree, columns)


def _sides(query: exp.Union) -> list[Expr]:
    """All parts of a chain of the same union: a chain of a thousand is no thousand levels deep."""
    sides = [query.expression]
    node = query.this
    while isinstance(node, exp.Union) and not _differs(node, query):
        sides.append(node.expression)
        node = node.this
    return [node, *reversed(sides)]


def _differs(inner: exp.Union, outer: exp.Union) -> bool:
    modified = any(inner.args.get(part) for part in ("limit", "offset", "order", "with_", "by_name"))
    by_name = bool(outer.args.get("by_name"))
    return modified or by_name or bool(inner.args.get("distinct")) != bool(outer.args.get("distinct"))


def _by_name(parts: Sequence[Built]) -> list[Built]:
    first, *others = parts
    found = [first]
    for part in others:
        known = {each.name.lower(): each for each in part.columns}
        if different := known.keys() ^ {each.name.lower() for each in first.columns}:
            raise UserError(f"UNION BY NAME: one side only has the column {min(different)!r}")
        found.append(Built(part.tree, tuple(known[each.name.lower()] for each in first.columns)))
    return found


def _check_columns(left: Built, right: Built) -> None:
    if len(left.columns) != len(right.columns):
        raise UserError(
            "the sides of a set operation differ in columns", detail=f"{len(left.columns)} and {len(right.columns)}"
        )


def _shared_columns(context: Context, first: Built) -> tuple[Visible, ...]:
    return tuple(Visible(each.name, context.fresh(each.name)) for each in first.columns)


def _renamed(part: Built, columns: Sequence[Visible], *more: Output) -> Operator:
    pairs = zip(part.columns, columns, strict=True)
    return Project(part.tree, (*(Output(new.column, col(old.column)) for old, new in pairs), *more))


def _counted(context: Context, query: exp.SetOperation, left: Built, right: Built) -> Built:
    columns = _shared_columns(context, left)
    on_left, on_right = context.fresh("on_left"), context.fresh("on_right")
    one, zero = exp.Literal.number(1), exp.Literal.number(0)
    both = UnionAll(
        (
            _renamed(left, columns, Output(on_left, one), Output(on_right, zero)),
            _renamed(right, columns, Output(on_left, zero), Output(on_right, one)),
        )
    )
    lefts, rights = context.fresh("lefts"), context.fresh("rights")
    sums = (Output(lefts, call("sum", col(on_left))), Output(rights, call("sum", col(on_right))))
    tree: Operator = Aggregate(both, tuple(each.column for each in columns), sums)
    is_intersect = isinstance(query, exp.Intersect)
    if query.args.get("distinct"):
        other = exp.GT if is_intersect else exp.EQ
        tree = Filter(tree, exp.and_(_compared(exp.GT, lefts, zero), _compared(other, rights, zero)))
    else:
        difference = exp.Sub(this=col(lefts), expression=col(rights))
        copies = call("least", col(lefts), col(rights)) if is_intersect else difference
        tree = Filter(tree, exp.GT(this=copies, expression=zero.copy()))
        numbers = call("sequence", one.copy(), exp.cast(copies.copy(), "int"))
        tree = Generate(tree, call("explode", numbers), (context.fresh("copy"),))
    return Built(Project(tree, Output.keep(each.column for each in columns)), columns)


def _compared(kind: type[exp.Binary], name: str, value: Expr) -> Expr:
    return kind(this=col(name), expression=value.copy())
