"""The types that Spark gives to decimals in expressions (pure).

PostgreSQL computes sums, differences and products of numerics exactly, as Spark does while 38 digits are enough. For
quotients and means each has rules of its own for the digits behind the point; a translation that is to give the same
has to know Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from trickle.operators import Expr

DIGITS = 38
_LEAST_SCALE = 6
_OF_INTEGERS = {
    exp.DType.TINYINT: 3,
    exp.DType.SMALLINT: 5,
    exp.DType.INT: 10,
    exp.DType.BIGINT: 20,
}
INTEGERS = frozenset(_OF_INTEGERS)
FLOATS = frozenset((exp.DType.FLOAT, exp.DType.DOUBLE))


@dataclass(frozen=True)
class Digits:
    """decimal(precision, scale)."""

    precision: int
    scale: int

    @property
    def fitted(self) -> Digits:
        """As Spark bounds it: digits before the point are kept, and of those behind it at least six."""
        if self.precision <= DIGITS:
            return self
        whole = self.precision - self.scale
        return Digits(DIGITS, max(DIGITS - whole, min(self.scale, _LEAST_SCALE)))

    @property
    def cut(self) -> Digits:
        return Digits(min(self.precision, DIGITS), min(self.scale, DIGITS))


def digits_of(value: Expr) -> Digits | None:
    """The type of a value that is a decimal or an integer; None where that cannot be told."""
    match value:
        case exp.Paren() | exp.Neg() | exp.Min() | exp.Max() | exp.Abs():
            return digits_of(value.this)
        case exp.Literal() if not value.is_string:
            return _of_literal(value.name)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _of_arithmetic(value)
        case exp.Sum():
            of = digits_of(value.this)
            return None if of is None else Digits(of.precision + 10, of.scale).cut
        case exp.Count():
            return Digits(_OF_INTEGERS[exp.DType.BIGINT], 0)
        case exp.Avg() if value.this.type is None or value.this.type.this not in INTEGERS:
            of = digits_of(value.this)
            return None if of is None else mean(of)
        case exp.Coalesce():
            return _widest([value.this, *value.expressions])
        case exp.Case():
            results = [branch.args["true"] for branch in value.args["ifs"]]
            return _widest([*results, *([value.args["default"]] if value.args.get("default") else [])])
        case exp.Column() | exp.Cast() | exp.TryCast() if value.type is not None:
            return _of_type(value.type)
        case _:
            return None


def quotient(left: Digits, right: Digits) -> Digits:
    """The type of left / right."""
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return Digits(left.precision - left.scale + right.scale + scale, scale).fitted


def mean(of: Digits) -> Digits:
    """The type of a mean."""
    return Digits(of.precision + 4, of.scale + 4).cut


def _of_arithmetic(value: Expr) -> Digits | None:
    left, right = digits_of(value.this), digits_of(value.expression)
    if left is None or right is None:
        return None
    match value:
        case exp.Mul():
            return Digits(left.precision + right.precision + 1, left.scale + right.scale).fitted
        case exp.Div():
            return quotient(left, right)
        case _:
            scale = max(left.scale, right.scale)
            whole = max(left.precision - left.scale, right.precision - right.scale)
            return Digits(whole + scale + 1, scale).fitted


def _widest(values: list[Expr]) -> Digits | None:
    found = [digits_of(value) for value in values if not isinstance(value, exp.Null)]
    known = [digits for digits in found if digits is not None]
    if len(known) < len(found) or not known:
        return None
    scale = max(digits.scale for digits in known)
    return Digits(max(digits.precision - digits.scale for digits in known) + scale, scale).cut


def _of_literal(text: str) -> Digits | None:
    """What a number is as a decimal.

    >>> _of_literal("0.06"), _of_literal("100")
    (Digits(precision=2, scale=2), Digits(precision=3, scale=0))
    """
    whole, _, behind = text.partition(".")
    if not (whole + behind).isdigit():
        return None
    return Digits(max(len(whole.lstrip("0")) + len(behind), 1), len(behind))


def _of_type(kind: exp.DataType) -> Digits | None:
    if kind.this in _OF_INTEGERS:
        return Digits(_OF_INTEGERS[kind.this], 0)
    if kind.this is exp.DType.DECIMAL and len(kind.expressions) == 2:
        precision, scale = (int(each.name) for each in kind.expressions)
        return Digits(precision, scale)
    return None
