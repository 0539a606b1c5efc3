"""Common table expressions.

Each use is built anew, so that the names of its columns are its own. A definition sees those before it in the same WITH
and those outside; with RECURSIVE also itself.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Recursion, RecursiveRef, walk
from trickle.sql.build.context import Built, Context, in_order
from trickle.sql.build.scope import Cte, Scope, Visible


def with_ctes(query: exp.Expr, scope: Scope) -> Scope:
    """The scope of a query with the definitions of its WITH."""
    with_ = query.args.get("with_")
    if not isinstance(with_, exp.With):
        return scope
    known = dict(scope.ctes)
    for each in with_.expressions:
        columns = tuple(column.name for column in each.args["alias"].columns)
        recursive = bool(with_.args.get("recursive")) and _names_itself(each)
        cte = Cte(each.alias, each.this, columns, replace(scope, ctes=known), recursive)
        known = {**known, each.alias.lower(): cte}
    return replace(scope, ctes=known)


def use_cte(context: Context, cte: Cte) -> Built:
    """One use of a common table expression."""
    if cte.step_of is not None:
        columns = tuple(replace(each, column=context.fresh(each.name)) for each in cte.step_of)
        return Built(RecursiveRef(cte.name, tuple(each.column for each in columns)), columns)
    context.names.count_use()
    if cte.recursive:
        return _recursion(context, cte)
    built = context.query(context, cte.query, cte.scope)
    return named(built, cte.columns, cte.name)


def named(built: Built, names: tuple[str, ...], what: str) -> Built:
    """The query's columns under the names of a column list."""
    if not names:
        return built
    if len(names) != len(built.columns):
        raise UnsupportedQuery(f"{what} has {len(built.columns)} columns and {len(names)} names for them")
    pairs = zip(built.columns, names, strict=True)
    return Built(built.tree, tuple(replace(column, name=name) for column, name in pairs))


def _names_itself(cte: exp.CTE) -> bool:
    return any(_is_reference(table, cte.alias) for table in cte.this.find_all(exp.Table))


def _is_reference(table: exp.Table, name: str) -> bool:
    return not table.db and table.name.lower() == name.lower() and isinstance(table.this, exp.Identifier)


def _recursion(context: Context, cte: Cte) -> Built:
    query = cte.query.unnest()
    outside = with_ctes(query, cte.scope)
    if not isinstance(query, exp.Union) or any(query.args.get(part) for part in ("limit", "order", "offset")):
        raise UnsupportedQuery(
            f"the recursive query {cte.name} is no UNION of a start and a step",
            hint="write: WITH RECURSIVE name AS (start UNION ALL step)",
        )
    base = named(context.query(context, query.this, outside), cte.columns, cte.name)
    columns = tuple(Visible(each.name, context.fresh(each.name)) for each in base.columns)
    itself = replace(cte, step_of=columns)
    step = context.query(context, query.expression, replace(outside, ctes={**outside.ctes, cte.name.lower(): itself}))
    names = tuple(each.column for each in columns)
    parts = in_order(context, base), in_order(context, step)
    tree = Recursion(cte.name, names, *parts, distinct=bool(query.args.get("distinct")))
    if any(isinstance(node, RecursiveRef) and node.name == cte.name for node in walk(base.tree)):
        raise UnsupportedQuery(f"the start of the recursive query {cte.name} refers to itself")
    return Built(tree, columns)
