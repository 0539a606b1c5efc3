"""Sets of key values as a few ranges (pure).

Parquet keeps the least and the greatest value of every page, row group and file, so a few ranges let most of a table be
skipped where its rows lie in the order of the key, or nearly. A long list of single values does not: every page would
be compared with all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType
from sqlglot import exp

from trickle.delta.building import both, cast, either, is_null
from trickle.delta.weighted import literal
from trickle.operators import Expr, col

Range = tuple[Any, Any]
"""The least and the greatest value, both included."""

MOST = 32


def is_ranged(kind: DataType) -> bool:
    """Whether values of a type are put into ranges."""
    return isinstance(kind, IntegralType | DateType | DecimalType)


def ranges_of(values: pa.ChunkedArray, most: int = MOST) -> list[Range]:
    """Ranges that hold all values that are not NULL, with the widest gaps between them left out; none where unknown.

    >>> ranges_of(pa.chunked_array([[1, 2, 3, 90, 91, None, 500]]), most=3)
    [(1, 3), (90, 91), (500, 500)]
    >>> ranges_of(pa.chunked_array([[1, 2, 3, 90, 91, None, 500]]), most=2)
    [(1, 91), (500, 500)]
    """
    known = pc.drop_null(pc.unique(values))
    if not len(known):
        return []
    ordered = known.take(pc.sort_indices(known))
    places = pa.arange(1, len(ordered))
    if len(ordered) > most:
        numbers = _numbers(ordered)
        gaps = pc.subtract(numbers[1:], numbers[:-1])
        widest = pc.select_k_unstable(gaps, most - 1, [("gap", "descending")])
        places = places.take(widest.sort())
    first, after = pa.array([0], pa.int64()), pa.array([len(ordered)], pa.int64())
    begins, ends = pa.concat_arrays([first, places]), pc.subtract(pa.concat_arrays([places, after]), 1)
    try:
        pairs = zip(ordered.take(begins).to_pylist(), ordered.take(ends).to_pylist(), strict=True)
    except (OverflowError, ValueError):  # dates before the year 1 and after 9999, which Python does not have
        return []
    return _joined(list(pairs))


def _numbers(values: pa.Array) -> pa.Array:
    """Values as numbers that are about as far apart."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    return values.cast(pa.float64(), safe=False)


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Ranges of whole numbers that follow each other as one."""
    found = [ranges[0]]
    for low, high in ranges[1:]:
        last = found[-1]
        if isinstance(low, int) and low == last[1] + 1:
            found[-1] = (last[0], high)
        else:
            found.append((low, high))
    return found


def covered(ranges: Sequence[Range], span: Range) -> float:
    """The share of a table's span that the ranges take."""
    low, high = span
    whole = distance(low, high)
    inside = [(max(a, low), min(b, high)) for a, b in ranges]
    return sum(distance(a, b) for a, b in inside if a <= b) / whole if whole else 1.0


def distance(low: Any, high: Any) -> float:
    """How far apart two values are, in whole numbers or days."""
    return float((high - low).days if isinstance(low, date) else high - low)


def within(column: str, ranges: Sequence[Range], kind: DataType, *, nulls: bool) -> Expr:
    """The condition that a column lies in one of the ranges, or is NULL where that counts."""
    tests = [_test(column, one, kind) for one in ranges]
    return either(*tests, *([is_null(col(column))] if nulls else []))


def _test(column: str, one: Range, kind: DataType) -> Expr:
    low, high = (_spelled(value, kind) for value in one)
    if one[0] == one[1]:
        return exp.EQ(this=col(column), expression=low)
    return exp.paren(both(exp.GTE(this=col(column), expression=low), exp.LTE(this=col(column), expression=high)))


def _spelled(value: Any, kind: DataType) -> Expr:
    match value:
        case int():
            return literal(value)
        case date():
            return cast(exp.Literal.string(value.isoformat()), "date")
        case Decimal():
            return cast(exp.Literal.string(format(value, "f")), kind.simpleString())
        case _:
            raise TypeError(f"{type(value).__name__} has no range")
