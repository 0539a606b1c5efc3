"""Comparisons of different types say what is converted.

Spark converts one side of ``text = number``, and '1' and '01' are both equal to 1. A rule that takes the values of one
side for those of the other (as a key to group by, as values to look up, as equal to a third column) would be wrong. So
the conversion is written into the tree, as Spark would do it:

    g.k = q.k    becomes    CAST(g.k AS BIGINT) = q.k        where g.k is a string and q.k an integer

and what is equal to q.k is an expression, not the column. Whole numbers and decimals of different widths are left as
they are: their conversions keep apart what differs. Where a type is not known, nothing is written, and the rules that
come after do not take one side for the other (``Names.is_exact``).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from trickle.operators import Apply, Expr, Filter, Join, Operator, column_names, transformed
from trickle.sql.rewrites.kinds import EXACT, INEXACT, INTEGERS, Kinds, Schemas, are_typed, kind_of, kinds_of

_MOMENTS = ("date", "timestamp_ntz", "timestamp")
"""Types of time: one is converted to the one that follows."""


def convert(tree: Operator, schemas: Schemas) -> Operator:
    """The same relation with conversions in the equalities of its conditions."""
    kinds = kinds_of(tree, schemas) if are_typed(schemas) else {}

    def converted(node: Operator) -> Operator:
        if not isinstance(node, Filter | Join | Apply) or node.condition is None:
            return node
        if not any(_compared(part, kinds) for part in node.condition.walk()):
            return node
        return replace(node, condition=node.condition.transform(_converted, kinds))

    return transformed(tree, converted)


def _compared(part: Expr, kinds: Kinds) -> tuple[str, str, str] | None:
    """The types of both sides of an equality and of what they are compared as, where that has to be written."""
    # Constants are no keys.
    if not isinstance(part, exp.EQ | exp.NullSafeEQ) or not all(map(column_names, (part.this, part.expression))):
        return None
    left, right = kind_of(part.this, kinds), kind_of(part.expression, kinds)
    common = None if left is None or right is None else common_type(left, right)
    return None if left is None or right is None or common is None else (left, right, common)


def _converted(part: Expr, kinds: Kinds) -> Expr:
    found = _compared(part, kinds)
    if found is None:
        return part
    left, right, common = found
    return type(part)(this=_as(part.this, left, common), expression=_as(part.expression, right, common))


def _as(side: Expr, kind: str, common: str) -> Expr:
    return side if kind == common or {kind, common} <= EXACT else exp.cast(side, common, dialect="spark")


def common_type(left: str, right: str) -> str | None:
    """The type in which Spark compares values of two types; None where no conversion has to be written.

    >>> common_type("string", "int"), common_type("int", "decimal"), common_type("bigint", "double")
    ('bigint', None, 'double')
    """
    if left == right or {left, right} <= EXACT:
        return None
    if {left, right} <= EXACT | INEXACT:
        return "double"
    if {left, right} <= set(_MOMENTS):
        return max(left, right, key=_MOMENTS.index)
    if left.startswith("string") != right.startswith("string"):
        other = right if left.startswith("string") else left
        if other in INTEGERS:
            return "bigint"
        if other in INEXACT or other == "decimal":
            return "double"
        return other if other in (*_MOMENTS, "boolean") else None
    return None
