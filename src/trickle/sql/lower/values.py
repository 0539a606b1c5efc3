"""Rows that are spelled out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trickle.operators import Expr, Values
from trickle.sql.lower.block import NO_COLUMN, Block, passed
from trickle.sql.lower.dialects import Dialect, translated


def values_block(node: Values, alias: str, dialect: Dialect) -> Block:
    """One row is a SELECT without FROM, no row is one of NULLs that nothing passes; the rest is VALUES."""
    match node.rows:
        case ():
            nulls: dict[str, Expr] = {name: exp.null() for name in node.names}
            return Block("values", exp.Select(), nulls, (exp.false(),))
        case (row,):
            return Block("values", exp.Select(), dict(zip(node.names, row, strict=True)))
        case rows:
            source = exp.Select().from_(_table(node.names, rows, alias, dialect), copy=False)
            return Block("values", source, passed(node.names))


def _table(names: Sequence[str], rows: Sequence[Sequence[Expr]], alias: str, dialect: Dialect) -> exp.Values:
    if not names:
        names, rows = (NO_COLUMN,), [(exp.Literal.number(1),)] * len(rows)
    return exp.Values(
        expressions=[exp.Tuple(expressions=[translated(value, dialect) for value in row]) for row in rows],
        alias=exp.TableAlias(
            this=exp.to_identifier(alias, quoted=True),
            columns=[exp.to_identifier(name, quoted=True) for name in names],
        ),
    )
