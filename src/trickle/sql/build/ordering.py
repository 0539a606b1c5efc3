"""ORDER BY with LIMIT and OFFSET.

The order is made total by all remaining columns of the result, so that the same rows always win. Without LIMIT and
OFFSET an order means nothing for a relation and is left out. LIMIT without ORDER BY is refused: any rows would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from trickle.errors import UnsupportedQuery, UserError
from trickle.operators import Aggregate, Expr, Filter, Operator, Output, Project, TopK, WindowOrder, col
from trickle.sql.build.context import Built, Context
from trickle.sql.build.resolve import Resolver
from trickle.sql.build.scope import Scope
from trickle.sql.build.subqueries import attached


@dataclass(frozen=True)
class Bounds:
    """How many rows are wanted, after how many."""

    limit: int | None
    offset: int

    @property
    def limits(self) -> bool:
        return self.limit is not None or self.offset > 0


@dataclass(frozen=True)
class Term:
    """One term of ORDER BY."""

    value: Expr
    descending: bool
    nulls_first: bool

    def over(self, value: Expr) -> Term:
        return replace(self, value=value)


def bounds_of(query: Expr) -> Bounds:
    """LIMIT, FETCH and OFFSET of a query."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise UnsupportedQuery("FETCH with PERCENT or WITH TIES is not supported", hint="use LIMIT")
        count = limit.args.get("count")
        return Bounds(_number(count, "FETCH") if count is not None else 1, _offset(offset))
    if limit is None or isinstance(limit.expression, exp.Var):
        return Bounds(None, _offset(offset))
    return Bounds(_number(limit.expression, "LIMIT"), _offset(offset))


def _offset(offset: exp.Offset | None) -> int:
    return 0 if offset is None else _number(offset.expression, "OFFSET")


def _number(value: Expr, clause: str) -> int:
    value = simplify(value.unnest(), dialect="spark")
    if isinstance(value, exp.Cast):
        value = value.this
    if not value.is_int:
        raise UnsupportedQuery(f"{clause} takes a whole number", detail=f"found {value.sql('spark')[:60]}")
    return int(value.to_py())


def order_terms(query: Expr, resolver: Resolver, values: Sequence[Expr]) -> list[Term]:
    """The terms of ORDER BY; ``values`` are the SELECT list, for ordinals and ALL."""
    order = query.args.get("order")
    if order is None:
        for other, clause in (("sort", "SORT BY"), ("cluster", "CLUSTER BY"), ("distribute", "DISTRIBUTE BY")):
            if query.args.get(other):
                raise UnsupportedQuery(f"LIMIT with {clause} is not supported", hint="order with ORDER BY")
        return []
    terms: list[Term] = []
    for node in order.expressions:
        descending = bool(node.args.get("desc"))
        nulls_first = bool(node.args.get("nulls_first"))
        if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
            terms += (Term(value, descending, nulls_first) for value in values)
            continue
        terms.append(Term(_term(node.this.unnest(), resolver, values), descending, nulls_first))
    return terms


def _term(node: Expr, resolver: Resolver, values: Sequence[Expr]) -> Expr:
    if not node.is_int:
        return resolver.resolve(node)
    place = int(node.to_py())
    if not 1 <= place <= len(values):
        raise UserError(f"ORDER BY {place}: the query has {len(values)} columns")
    return values[place - 1]


def first_rows(tree: Operator, terms: Sequence[Term], columns: Sequence[str], bounds: Bounds) -> Operator:
    """The first rows by terms that are columns of the tree, then by the columns of the result."""
    order: dict[str, WindowOrder] = {}
    for term in terms:
        order.setdefault(term.value.name, WindowOrder(term.value.name, term.descending, term.nulls_first))
    for name in columns:
        order.setdefault(name, WindowOrder(name))
    top = TopK(tree, tuple(order.values()), bounds.limit, bounds.offset)
    return top if tuple(columns) == tree.columns else Project(top, Output.keep(columns))


def unordered(tree: Operator, bounds: Bounds) -> Operator:
    """LIMIT without ORDER BY, where it does not matter which rows win: no rows, or one at most."""
    if bounds.limit == 0:
        return Filter(tree, exp.false())
    if _has_one_row(tree):
        return tree if not bounds.offset else Filter(tree, exp.false())
    raise UnsupportedQuery(
        "LIMIT without ORDER BY is not supported", detail="any rows would do", hint="add ORDER BY before LIMIT"
    )


def _has_one_row(tree: Operator) -> bool:
    while isinstance(tree, Project | Filter):
        tree = tree.input
    return isinstance(tree, Aggregate) and not tree.keys


def ordered(context: Context, query: Expr, built: Built, scope: Scope) -> Built:
    """ORDER BY and LIMIT around a whole query, such as a union: its columns are all there is to order by."""
    bounds = bounds_of(query)
    if not bounds.limits:
        return built
    inside = Scope.over(built.relation(None), scope)
    terms = order_terms(query, Resolver(context, inside), [col(each.column) for each in built.columns])
    if not terms:
        return Built(unordered(built.tree, bounds), built.columns)
    tree, values = attached(context, built.tree, [term.value for term in terms])
    computed = {value: Output(context.fresh("order"), value) for value in values if not isinstance(value, exp.Column)}
    if computed:
        tree = Project(tree, (*Output.keep(tree.columns), *computed.values()))
    columns = [
        term.over(col(computed[value].name)) if value in computed else term.over(value)
        for term, value in zip(terms, values, strict=True)
    ]
    kept = tuple(dict.fromkeys(each.column for each in built.columns))
    return Built(first_rows(tree, columns, kept, bounds), built.columns)
