"""What sqlglot's translation from Spark to PostgreSQL gets wrong, put right.

Checked: arithmetic (``/`` divides as double), comparison, CASE, COALESCE, NULL order, ``count_if``, boolean aggregates,
``isnull``. Text compares by the database's collation: Spark's order is that of ``COLLATE "C"``.
"""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Expr
from trickle.sql.lower.rewriting import rewritten, spelled


def adapt_to_postgres(holder: Expr) -> None:
    """Change a tree that was read as Spark SQL in place."""
    rewritten(holder, _adapted)


def _adapted(node: Expr) -> Expr:
    if isinstance(node, exp.Anonymous):
        return spelled(node)
    if isinstance(node, exp.CountIf):
        # Over no rows SUM is NULL, and the count is 0.
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    return node
