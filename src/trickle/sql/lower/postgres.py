"""What sqlglot's translation from Spark to PostgreSQL gets wrong, put right.

Checked: arithmetic (``/`` divides as double), comparison, CASE, COALESCE, NULL order, ``count_if``, boolean aggregates,
``isnull``. Text compares by the database's collation: Spark's order is that of ``COLLATE "C"``.
"""

from __future__ import annotations

from trickle.operators import Expr
from trickle.sql.lower.rewriting import rewritten, spelled


def adapt_to_postgres(holder: Expr) -> None:
    """Change a tree that was read as Spark SQL in place."""
    rewritten(holder, spelled)
