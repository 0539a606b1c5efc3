"""Small expressions that rules are written with. Functions have Spark's names."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from trickle.algebra.weights import WEIGHT
from trickle.operators import Expr, col


def call(name: str, *arguments: Expr) -> exp.Anonymous:
    """A function call."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def case(*branches: tuple[Expr, Expr], otherwise: Expr | None = None) -> exp.Case:
    """``CASE WHEN ... THEN ... ELSE ... END``."""
    ifs = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in branches]
    return exp.Case(ifs=ifs, default=None if otherwise is None else otherwise.copy())


def is_null(value: Expr) -> Expr:
    """``value IS NULL``."""
    return exp.Is(this=grouped(value), expression=exp.null())


def is_not_null(value: Expr) -> Expr:
    """``value IS NOT NULL``."""
    return exp.Not(this=is_null(value))


def both(*conditions: Expr) -> Expr:
    """All of the conditions; TRUE for none."""
    return exp.and_(*(condition.copy() for condition in conditions)) if conditions else exp.true()


def either(*conditions: Expr) -> Expr:
    """One of the conditions or more; FALSE for none."""
    return exp.or_(*(condition.copy() for condition in conditions)) if conditions else exp.false()


def grouped(value: Expr) -> Expr:
    """The value, in parentheses unless it holds together by itself."""
    return exp.paren(value.copy()) if isinstance(value, exp.Binary | exp.Unary | exp.Predicate) else value.copy()


def same(pairs: Iterable[tuple[str, str]]) -> Expr:
    """Whether pairs of columns are equal, NULL with NULL; TRUE for none.

    No conjunction: Spark's optimiser takes minutes over one of many columns.
    """
    differ = [exp.Not(this=exp.paren(exp.NullSafeEQ(this=col(a), expression=col(b)))) for a, b in pairs]
    return case(*((one, exp.false()) for one in differ), otherwise=exp.true()) if differ else exp.true()


def inserted() -> Expr:
    """Whether a change row was inserted."""
    return exp.GT(this=col(WEIGHT), expression=exp.Literal.number("0"))


def deleted() -> Expr:
    """Whether a change row was deleted."""
    return exp.LT(this=col(WEIGHT), expression=exp.Literal.number("0"))


def signed(value: Expr) -> Expr:
    """The value, negated for a deletion. Not multiplied: that would change a decimal's type."""
    return case((deleted(), exp.Neg(this=grouped(value))), otherwise=value)


def cast(value: Expr, to: str) -> Expr:
    """``CAST(value AS to)``."""
    return exp.cast(value.copy(), to, dialect="spark")
