"""One SELECT, in the order in which its clauses mean something.

    FROM, WHERE, GROUP BY, HAVING, generators, windows, QUALIFY, SELECT list, DISTINCT, ORDER BY with LIMIT

Expressions are resolved over the columns of FROM once; each step then writes them over the columns that it makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trickle.errors import UnsupportedQuery, UserError
from trickle.operators import Expr, Operator, Output, Project, col
from trickle.sql.build.calls import function_hint
from trickle.sql.build.context import Built, Context
from trickle.sql.build.distinct import distinct_rows, first_of_each
from trickle.sql.build.generators import Generator, type_of
from trickle.sql.build.grouping import aggregated, has_aggregate
from trickle.sql.build.grouping_sets import Grouping, grouping_of
from trickle.sql.build.items import Item, aliases_of, select_list
from trickle.sql.build.ordering import Bounds, Term, bounds_of, first_rows, order_terms, unordered
from trickle.sql.build.relations import from_clause
from trickle.sql.build.resolve import Resolver, bare
from trickle.sql.build.scope import Scope, Visible
from trickle.sql.build.subqueries import attached, filtered
from trickle.sql.build.windows import spelled_out, windowed


@dataclass
class _Clauses:
    """The expressions of a SELECT that are not computed yet, and what they are computed over."""

    context: Context
    scope: Scope
    tree: Operator
    items: list[Item]
    generators: list[Generator]
    having: Expr | None = None
    qualify: Expr | None = None
    order: list[Term] = field(default_factory=list)
    distinct_on: list[Expr] = field(default_factory=list)
    # Keys that grouping sets gave new names.
    renamed: dict[str, str] = field(default_factory=dict)

    def expressions(self) -> list[Expr]:
        optional = [each for each in (self.having, self.qualify) if each is not None]
        made = (each.function for each in self.generators)
        ordering = (*(term.value for term in self.order), *self.distinct_on)
        return [*(item.value for item in self.items), *made, *optional, *ordering]

    def replace(self, expressions: Sequence[Expr]) -> None:
        """Take what ``expressions`` gave, rewritten."""
        rest = iter(map(bare, expressions))
        self.items = [item.over(next(rest)) for item in self.items]
        self.generators = [each.calling(next(rest)) for each in self.generators]
        self.having = next(rest) if self.having is not None else None
        self.qualify = next(rest) if self.qualify is not None else None
        self.order = [term.over(next(rest)) for term in self.order]
        self.distinct_on = list(rest)


def build_select(context: Context, select: exp.Select, scope: Scope) -> Built:
    """The tree of a SELECT; ``scope`` is what is outside of it."""
    select = spelled_out(select)
    bounds = bounds_of(select)
    relation = from_clause(context, select, scope)
    inside = Scope.over(relation, scope)
    clauses = _read(context, select, inside, relation.tree, bounds)
    if where := select.args.get("where"):
        condition = Resolver(context, inside).resolve(where.this)
        if has_aggregate(condition, context.aggregates):
            raise UnsupportedQuery("an aggregate function in WHERE", hint="filter groups with HAVING")
        clauses.tree = filtered(context, clauses.tree, condition)
    _aggregate(clauses, select)
    clauses.tree = filtered(context, clauses.tree, clauses.having, clauses.renamed)
    clauses.having = None
    _attach(clauses)
    for each in clauses.generators:
        clauses.tree = each.over(clauses.tree)
    clauses.generators = []
    clauses.replace(_keep_tree(clauses, *windowed(context, clauses.tree, clauses.expressions())))
    if clauses.qualify is not None:
        clauses.tree = filtered(context, clauses.tree, clauses.qualify)
        clauses.qualify = None
    return _listed(clauses, select, bounds)


def _keep_tree(clauses: _Clauses, tree: Operator, expressions: list[Expr]) -> list[Expr]:
    clauses.tree = tree
    return expressions


def _read(context: Context, select: exp.Select, scope: Scope, tree: Operator, bounds: Bounds) -> _Clauses:
    read = select_list(context, select, scope)
    items = read.items
    later = Resolver(context, scope, aliases_of(items))
    having, qualify = (select.args.get(part) for part in ("having", "qualify"))
    clauses = _Clauses(context, scope, tree, items, read.generators)
    clauses.having = later.resolve(having.this) if having else None
    clauses.qualify = later.resolve(qualify.this) if qualify else None
    listed = Resolver(context, scope, aliases_of(items), aliases_first=True)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        clauses.distinct_on = [listed.resolve(key) for key in distinct.args["on"].expressions]
    if bounds.limits or clauses.distinct_on:
        clauses.order = order_terms(select, listed, [item.value for item in items])
    return clauses


def _aggregate(clauses: _Clauses, select: exp.Select) -> None:
    context, group = clauses.context, select.args.get("group")
    calls = any(has_aggregate(each, context.aggregates) for each in clauses.expressions())
    if group is None and not calls and clauses.having is None:
        return
    grouping = _grouping(clauses, group)
    found = aggregated(context, clauses.tree, grouping, clauses.expressions())
    clauses.tree, clauses.renamed = found.tree, dict(found.renamed)
    clauses.replace(found.expressions)


def _grouping(clauses: _Clauses, group: exp.Group | None) -> Grouping:
    if group is not None and group.args.get("all"):
        made = {col(each.column) for generator in clauses.generators for each in generator.columns}
        values = [item.value for item in clauses.items if item.value not in made]
        keys = [value for value in values if not has_aggregate(value, clauses.context.aggregates)]
        group = exp.Group(expressions=keys)
        return grouping_of(group, lambda key: key)
    resolver = Resolver(clauses.context, clauses.scope, aliases_of(clauses.items))

    def resolve(node: Expr) -> Expr:
        if node.is_int:
            return _by_place(clauses.items, int(node.to_py()), "GROUP BY")
        return resolver.resolve(node)

    return grouping_of(group, resolve)


def _by_place(items: Sequence[Item], place: int, clause: str) -> Expr:
    if not 1 <= place <= len(items):
        raise UserError(f"{clause} {place}: the SELECT list has {len(items)} columns")
    return items[place - 1].value


def _attach(clauses: _Clauses) -> None:
    tree, expressions = attached(clauses.context, clauses.tree, clauses.expressions(), clauses.renamed)
    clauses.tree = tree
    clauses.replace(expressions)


def _listed(clauses: _Clauses, select: exp.Select, bounds: Bounds) -> Built:
    """The SELECT list as columns, distinct and ordered if asked for."""
    context, tree = clauses.context, clauses.tree
    outputs = _Outputs(context, tree)
    columns = tuple(
        Visible(item.name, outputs.name_of(item.value, item.name), _type(clauses, item.value)) for item in clauses.items
    )
    shown = tuple(outputs.made.values())
    terms = [term.over(col(outputs.name_of(term.value, "order"))) for term in clauses.order]
    keys = [outputs.name_of(key, "key") for key in clauses.distinct_on]
    extra = tuple(outputs.made.values())[len(shown) :]
    names = tuple(output.name for output in shown)
    if keys:
        tree = first_of_each(context, Project(tree, (*shown, *extra)), keys, terms, names)
    elif select.args.get("distinct"):
        tree = distinct_rows(tree, shown, extra)
    else:
        tree = Project(tree, (*shown, *extra))
    if bounds.limits:
        tree = first_rows(tree, terms, names, bounds) if terms else unordered(tree, bounds)
    return Built(tree, columns)


@dataclass
class _Outputs:
    """The columns that the SELECT list makes, each value once."""

    context: Context
    tree: Operator
    made: dict[Expr, Output] = field(default_factory=dict)

    def name_of(self, value: Expr, hint: str) -> str:
        value = value.unnest()
        if value not in self.made:
            self.made[value] = Output(self._name(value, hint), value)
        return self.made[value].name

    def _name(self, value: Expr, hint: str) -> str:
        if isinstance(value, exp.Column) and value.name in self.tree.columns:
            return value.name
        return self.context.fresh(hint if hint.isidentifier() else function_hint(value))


def _type(clauses: _Clauses, value: Expr) -> str | None:
    type_ = type_of(value, clauses.scope)
    return None if type_ is None else type_.sql("spark")
