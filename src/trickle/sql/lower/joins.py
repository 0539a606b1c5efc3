"""Joins of two relations that are known by name.

Spark and DuckDB have semi and anti joins. PostgreSQL says [NOT] EXISTS: columns inside it that the right relation does
not have are the left's, since all names differ.
"""

from __future__ import annotations

from typing import assert_never

from sqlglot import exp

from trickle.operators import Expr, Join, JoinKind
from trickle.sql.lower.block import from_, table
from trickle.sql.lower.dialects import Dialect, is_postgres, translated


def joined(
    node: Join, left: str, right: str, dialect: Dialect, *, alone: bool = False
) -> tuple[exp.Select, tuple[Expr, ...]]:
    """What a SELECT reads, and the conditions that it needs besides. ``alone``: in Spark, one task does all of it."""
    condition = None if node.condition is None else translated(node.condition, dialect)
    if is_postgres(dialect) and not node.kind.keeps_right:
        return from_(left), (_exists(node.kind, right, condition),)
    query = from_(left)
    query.set("joins", [_join(node.kind, right, condition, dialect)])
    if dialect == "spark" and (hint := _alone(node, left, right) if alone else _broadcast(node, left, right)):
        query.set("hint", hint)
    return query, ()


def _join(kind: JoinKind, right: str, condition: Expr | None, dialect: Dialect) -> exp.Join:
    side = "LEFT" if kind is JoinKind.LEFT or (dialect == "spark" and not kind.keeps_right) else None
    word: str | None
    match kind:
        case JoinKind.INNER:
            word = "CROSS" if condition is None else "INNER"
        case JoinKind.LEFT:
            word = None
        case JoinKind.SEMI:
            word = "SEMI"
        case JoinKind.ANTI:
            word = "ANTI"
        case _:
            assert_never(kind)
    if condition is None and kind is not JoinKind.INNER:
        condition = exp.true()
    return exp.Join(this=table(right), side=side, kind=word, on=condition)


def _exists(kind: JoinKind, right: str, condition: Expr | None) -> Expr:
    query = from_(right)
    query.set("expressions", [exp.Literal.number(1)])
    if condition is not None:
        query.where(condition, copy=False)
    found = exp.Exists(this=query)
    return exp.Not(this=found) if kind is JoinKind.ANTI else found


def _broadcast(node: Join, left: str, right: str) -> exp.Hint | None:
    """Spark can send the small side to everyone, except the side whose unmatched rows are kept or asked for."""
    if node.small is None or (node.small == "left" and node.kind is not JoinKind.INNER):
        return None
    small = left if node.small == "left" else right
    return exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier(small, quoted=True)])])


def _alone(node: Join, left: str, right: str) -> exp.Hint:
    """One task builds a hash table of the small side. It says that it is alone: Spark does not see it in a join's."""
    small = left if node.small == "left" and node.kind is JoinKind.INNER else right
    return exp.Hint(
        expressions=[
            exp.Anonymous(this="SHUFFLE_HASH", expressions=[exp.to_identifier(small, quoted=True)]),
            exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)]),
        ]
    )
