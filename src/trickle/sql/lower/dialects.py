"""Expressions of Spark SQL in the dialect of a statement.

The trees hold functions under Spark's names, as text that sqlglot does not interpret. For Spark they stay as they are.
For another dialect an expression is written as Spark SQL, read with sqlglot's knowledge of Spark's functions, and
adapted where sqlglot's translation has another meaning (``duckdb.py``, ``postgres.py``). In ``postgres_own`` trees the
user's expressions are PostgreSQL's already, and only what rules and rewrites put around them is adapted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, assert_never

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from trickle.errors import UnsupportedQuery
from trickle.operators import Expr
from trickle.sql.lower.duckdb import adapt_to_duckdb
from trickle.sql.lower.postgres import adapt_own, adapt_to_postgres

Dialect = Literal["spark", "duckdb", "postgres", "postgres_own"]


def translated(expression: Expr, dialect: Dialect) -> Expr:
    """An expression of ours, as a new one of a dialect.

    >>> from trickle.operators import col
    >>> ratio = exp.Div(this=col("a"), expression=col("b"))
    >>> translated(ratio, "duckdb").sql("duckdb")
    '"a" / NULLIF("b", 0)'
    """
    same = dialect == "spark" or isinstance(expression, exp.Column)
    return expression.copy() if same else _foreign(expression, dialect).copy()


@lru_cache(maxsize=4096)
def _foreign(expression: Expr, dialect: Dialect) -> Expr:
    if dialect == "postgres_own":
        return adapted(expression.copy(), dialect)
    return adapted(_read_spark(expression.sql("spark")), dialect)


def _read_spark(text: str) -> Expr:
    try:
        return sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        raise UnsupportedQuery("an expression cannot be translated from Spark SQL", detail=text) from error


def adapted(tree: Expr, dialect: Dialect) -> Expr:
    """A tree that was read as Spark SQL (an expression or a whole query), so that it means the same in the dialect.

    The tree is changed in place.
    """
    holder = exp.Tuple(expressions=[tree])
    match dialect:
        case "duckdb":
            adapt_to_duckdb(holder)
        case "postgres":
            adapt_to_postgres(holder)
        case "postgres_own":
            adapt_own(holder)
        case "spark":
            pass
        case _:
            assert_never(dialect)
    changed: Expr = holder.expressions[0]
    changed.pop()
    return changed


def is_postgres(dialect: Dialect) -> bool:
    """Whether PostgreSQL runs the statement."""
    return dialect in ("postgres", "postgres_own")


def written(query: Expr, dialect: Dialect, *, pretty: bool = False) -> str:
    """The text of a query."""
    try:
        return query.sql(
            "postgres" if is_postgres(dialect) else dialect,
            pretty=pretty,
            copy=False,
            comments=False,
            normalize_functions=False,
            unsupported_level=ErrorLevel.RAISE,
        )
    except SqlglotError as error:
        raise UnsupportedQuery(f"the query cannot be written for {dialect}", detail=str(error)) from error
