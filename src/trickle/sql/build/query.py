"""Any query: SELECT, set operations, parentheses, VALUES; with its WITH, ORDER BY and LIMIT."""

from __future__ import annotations

from sqlglot import exp

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr
from trickle.sql.build.context import Built, Context
from trickle.sql.build.ctes import with_ctes
from trickle.sql.build.names import lambda_parameters
from trickle.sql.build.ordering import ordered
from trickle.sql.build.relations import values
from trickle.sql.build.scope import Scope
from trickle.sql.build.select import build_select
from trickle.sql.build.setops import set_operation
from trickle.sql.tokens import read_source
from trickle.sql.trees import query_tree


def build_text(context: Context, text: str) -> Built:
    """The tree of a text, in a scope of its own."""
    source = read_source(text)
    statements = source.statements()
    if len(statements) != 1:
        raise source.error(0, "one query is expected")
    tokens = source.tokens_between(statements[0][0].start, statements[0][-1].end)
    root = query_tree(source, tokens, context.max_depth).root
    context.names.reserve(lambda_parameters(root))
    return build_query(context, root, Scope())


def build_query(context: Context, query: Expr, scope: Scope) -> Built:
    """The tree of a query; ``scope`` has what is outside of it."""
    scope = with_ctes(query, scope)
    match query:
        case exp.Select():
            return build_select(context, query, scope)
        case exp.SetOperation():
            return ordered(context, query, set_operation(context, query, scope), scope)
        case exp.Subquery():
            return ordered(context, query, build_query(context, query.this, scope), scope)
        case exp.Values():
            return ordered(context, query, values(context, query, scope), scope)
        case _:
            raise UnsupportedQuery(f"{query.key.upper()} is not supported as a query", detail=query.sql("spark")[:80])
