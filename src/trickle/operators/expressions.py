"""Expressions inside operators: sqlglot's nodes in Spark's dialect, whose columns are bare names.

Functions keep Spark's names (``exp.Anonymous``), so that Spark runs what the user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

Expr = exp.Expr


@dataclass(frozen=True)
class Output:
    """A computed column. Mind that expressions are compared and hashed by their structure."""

    name: str
    value: Expr

    @property
    def is_plain(self) -> bool:
        """Whether the column is passed through, perhaps under a new name."""
        return isinstance(self.value, exp.Column)

    @staticmethod
    def keep(names: Iterable[str]) -> tuple[Output, ...]:
        """Columns passed through under their names."""
        return tuple(Output(name, col(name)) for name in names)


def col(name: str) -> exp.Column:
    """A reference to a column."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def column_names(expression: Expr) -> frozenset[str]:
    """The columns that an expression uses.

    >>> from sqlglot import parse_one
    >>> sorted(column_names(parse_one("a + coalesce(b, 1)")))
    ['a', 'b']
    """
    return frozenset(column.name for column in expression.find_all(exp.Column))


def renamed(expression: Expr, names: Mapping[str, str]) -> Expr:
    """The expression over columns of other names."""
    return substituted(expression, {old: col(new) for old, new in names.items()})


def substituted(expression: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with columns replaced by values.

    >>> from sqlglot import parse_one
    >>> substituted(parse_one("a + b"), {"a": parse_one("x * 2")}).sql("spark")
    '(x * 2) + b'
    """
    if isinstance(expression, exp.Column):
        return values.get(expression.name, expression).copy()

    def replace(node: Expr) -> Expr:
        if not isinstance(node, exp.Column) or node.name not in values:
            return node
        value = values[node.name].copy()
        # At the root, and inside calls, nothing outside can bind tighter.
        return (
            exp.paren(value)
            if isinstance(value, exp.Binary | exp.Unary | exp.Between | exp.In) and node.parent
            else value
        )

    return expression.copy().transform(replace, copy=False)


def equal(left: str, right: str) -> Expr:
    """``left = right``."""
    return exp.EQ(this=col(left), expression=col(right))


def null_safe(pairs: Iterable[tuple[str, str]]) -> Expr:
    """``a <=> b AND ...`` for pairs of columns; TRUE for none: NULL equals NULL."""
    return (
        exp.and_(*(exp.NullSafeEQ(this=col(a), expression=col(b)) for a, b in pairs))
        if (pairs := list(pairs))
        else exp.true()
    )
