"""Joins.

RIGHT is LEFT with the sides exchanged: columns are known by name, so their order does not matter. FULL is all rows of
LEFT and the rows of the right without a partner. USING and NATURAL compare the columns of the same name and merge them:
into the left's, of a right join the right's, of a full join ``coalesce(left, right)``; the merged columns come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.errors import UnknownColumn, UnsupportedQuery
from trickle.operators import (
    Apply,
    ApplyKind,
    Expr,
    Join,
    JoinKind,
    Operator,
    Output,
    Project,
    UnionAll,
    col,
    equal,
    free_columns,
)
from trickle.sql.build.calls import call
from trickle.sql.build.context import Context
from trickle.sql.build.negations import has_subquery
from trickle.sql.build.resolve import Resolver
from trickle.sql.build.scope import Relation, Scope, Source, Visible
from trickle.sql.build.subqueries import attached, conjunction, conjuncts, filtered

_KINDS = {"": "inner", "INNER": "inner", "CROSS": "inner", "OUTER": "", "SEMI": "semi", "ANTI": "anti"}


def joined(context: Context, left: Relation, right: Relation, join: exp.Join, scope: Scope) -> Relation:
    """Two relations joined; the right does not look at the left."""
    kind = kind_of(join)
    both = Relation(left.tree, (*left.sources, *right.sources), (*left.columns, *right.columns))
    shared = _shared(left, right, join)
    condition: Expr | None = None
    if shared:
        condition = conjunction([equal(a.column, b.column) for a, b in shared])
    elif join.args.get("on") is not None:
        condition = Resolver(context, Scope.over(both, scope)).resolve(join.args["on"])
    match kind:
        case "inner":
            tree = _inner(context, left.tree, right.tree, condition)
        case "semi" | "anti":
            l_tree, r_tree, condition = _beside(context, left.tree, right.tree, condition)
            return left.with_tree(Join(JoinKind(kind), l_tree, r_tree, condition))
        case "left" | "full":
            l_tree, r_tree, condition = _beside(context, left.tree, right.tree, condition)
            if kind == "full":
                return _full(context, left, right, Join(JoinKind.LEFT, l_tree, r_tree, condition), shared)
            tree = Join(JoinKind.LEFT, l_tree, r_tree, condition)
        case _:
            r_tree, l_tree, condition = _beside(context, right.tree, left.tree, condition)
            tree = Join(JoinKind.LEFT, r_tree, l_tree, condition)
    merged = [b if kind == "right" else a for a, b in shared]
    return Relation(tree, both.sources, _merged(left, right, merged))


def kind_of(join: exp.Join) -> str:
    """One of inner, left, right, full, semi, anti."""
    method = join.method.upper()
    if method not in ("", "NATURAL"):
        raise UnsupportedQuery(f"{method} JOIN is not supported")
    kind = _KINDS.get(join.kind.upper())
    if kind is None:
        raise UnsupportedQuery(f"{join.kind.upper()} JOIN is not supported")
    return kind if kind in ("semi", "anti") else join.side.lower() or kind or "inner"


def _shared(left: Relation, right: Relation, join: exp.Join) -> list[tuple[Visible, Visible]]:
    """The pairs of columns that USING or NATURAL compare."""
    if join.method.upper() == "NATURAL":
        names = {each.name.lower() for each in right.columns}
        wanted = [each.name for each in left.columns if each.name.lower() in names]
    else:
        wanted = [each.name for each in join.args.get("using") or ()]
    return [(_column(left, name), _column(right, name)) for name in wanted]


def _column(relation: Relation, name: str) -> Visible:
    scope = Scope((), relation.columns)
    found = scope.find_here([name])
    if found is None:
        raise UnknownColumn(f"no column {name!r} to join by", detail="USING names columns that both sides have")
    return found.visible


def _merged(left: Relation, right: Relation, merged: Sequence[Visible]) -> tuple[Visible, ...]:
    names = {each.name.lower() for each in merged}
    rest = [each for each in (*left.columns, *right.columns) if each.name.lower() not in names]
    return (*merged, *rest)


def _inner(context: Context, left: Operator, right: Operator, condition: Expr | None) -> Operator:
    """Conditions with subqueries are conditions of the joined rows."""
    parts = [] if condition is None else list(conjuncts(condition))
    plain = [each for each in parts if not has_subquery(each)]
    rest = [each for each in parts if has_subquery(each)]
    tree = Join(JoinKind.INNER, left, right, conjunction(plain) if plain else None)
    return filtered(context, tree, conjunction(rest) if rest else None)


def _beside(
    context: Context, left: Operator, right: Operator, condition: Expr | None
) -> tuple[Operator, Operator, Expr | None]:
    """For joins that keep rows without a partner: each subquery of the condition is computed on one of the sides."""
    if condition is None or not has_subquery(condition):
        return left, right, condition
    for tree, other in ((right, left), (left, right)):
        grown, (rewritten,) = attached(context, tree, [condition])
        needed = _needs_of_applies(grown, tree)
        if not needed & set(other.columns):
            return (left, grown, rewritten) if tree is right else (grown, right, rewritten)
    raise UnsupportedQuery(
        "a subquery in the condition of an outer, semi or anti join looks at both sides",
        hint="join first and filter with WHERE, or compute the subquery in one side",
    )


def _needs_of_applies(grown: Operator, base: Operator) -> frozenset[str]:
    needed: frozenset[str] = frozenset()
    while grown is not base:
        assert isinstance(grown, Apply)
        needed |= free_columns(grown.right) | grown.used
        grown = grown.left
    return needed


def _full(
    context: Context, left: Relation, right: Relation, join: Join, shared: Sequence[tuple[Visible, Visible]]
) -> Relation:
    names = {name: context.fresh(name) for name in (*join.left.columns, *join.right.columns)}
    matched = Project(join, tuple(Output(new, col(old)) for old, new in names.items()))
    alone = Join(JoinKind.ANTI, join.right, join.left, join.condition)
    of_right = set(join.right.columns)
    outputs = (Output(new, col(old) if old in of_right else exp.null()) for old, new in names.items())
    tree: Operator = UnionAll((matched, Project(alone, tuple(outputs))))
    left, right = _moved(left, names), _moved(right, names)
    merged: list[Visible] = []
    values: list[Output] = []
    for a, b in shared:
        both = call("coalesce", col(names[a.column]), col(names[b.column]))
        values.append(Output(context.fresh(a.name), both))
        merged.append(Visible(a.name, values[-1].name, a.type))
    if values:
        tree = Project(tree, (*Output.keep(tree.columns), *values))
    return Relation(tree, (*left.sources, *right.sources), _merged(left, right, merged))


def _moved(relation: Relation, names: dict[str, str]) -> Relation:
    scope = Scope(relation.sources, relation.columns).renamed(names)
    return Relation(relation.tree, scope.sources, scope.columns)


def applied(context: Context, left: Relation, right: Relation, join: exp.Join, scope: Scope) -> Relation:
    """A LATERAL subquery, whose tree may use columns of the left."""
    kind = kind_of(join)
    if kind not in ("inner", "left") or join.method or join.args.get("using"):
        raise UnsupportedQuery(
            f"{kind.upper()} JOIN LATERAL with these conditions is not supported",
            hint="use JOIN LATERAL or LEFT JOIN LATERAL with ON",
        )
    sources: tuple[Source, ...] = (*left.sources, *right.sources)
    both = Relation(left.tree, sources, (*left.columns, *right.columns))
    condition: Expr | None = None
    if join.args.get("on") is not None:
        condition = Resolver(context, Scope.over(both, scope)).resolve(join.args["on"])
    if condition is not None and (has_subquery(condition) or kind == "inner"):
        if kind == "left":
            raise UnsupportedQuery("a subquery in the condition of LEFT JOIN LATERAL is not supported")
        return both.with_tree(filtered(context, Apply(ApplyKind.INNER, left.tree, right.tree), condition))
    return both.with_tree(Apply(ApplyKind(kind), left.tree, right.tree, condition))
