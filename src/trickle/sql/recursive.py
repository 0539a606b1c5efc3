"""Recursive queries, for those who only ask which columns they give.

Spark's analyser refuses UNION, aggregates and more in a recursion, and the engine goes round by itself. A recursion has
the columns and the types of its start.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.sql.canonical.parsing import root_of, written
from trickle.sql.depth import room_to_recurse
from trickle.sql.query import DEFAULT_MAX_DEPTH


def is_recursive(text: str, max_depth: int = DEFAULT_MAX_DEPTH) -> bool:
    """Whether a query has a common table expression that refers to itself."""
    # Most do not have the word.
    return "recursive" in text.lower() and bool(_recursions(root_of(text, max_depth)))


def starts_of(text: str, max_depth: int = DEFAULT_MAX_DEPTH) -> str:
    """The query with each recursion replaced by its start; the very same text when there is none.

    >>> starts_of("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n")
    'WITH RECURSIVE n(i) AS (SELECT 1) SELECT i FROM n'
    """
    if not is_recursive(text, max_depth):
        return text
    with room_to_recurse():
        root = root_of(text, max_depth)
        for cte in _recursions(root):
            body = cte.this.unnest()
            start = body.this.copy()
            if body.args.get("with_") and not start.args.get("with_"):
                start.set("with_", body.args["with_"].copy())
            cte.set("this", start)
        return written(root)


def _recursions(root: exp.Expr) -> list[exp.CTE]:
    """The common table expressions that are a start and a step; those inside others come after them."""
    return [
        cte
        for with_ in root.find_all(exp.With)
        if with_.args.get("recursive")
        for cte in with_.expressions
        if isinstance(cte.this.unnest(), exp.Union) and _refers(cte.this.unnest().expression, cte.alias)
    ]


def _refers(step: exp.Expr, name: str) -> bool:
    return any(not table.db and table.name.lower() == name.lower() for table in step.find_all(exp.Table))
