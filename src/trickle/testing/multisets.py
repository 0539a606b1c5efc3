"""Tables of rows as multisets: what two results must agree on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from trickle.algebra.weights import WEIGHT

Row = tuple[Hashable, ...]

_DIGITS = 9
_NAN = "NaN"
_NUMBERS = {
    pa.date32().id: pa.int32(),
    pa.timestamp("us").id: pa.int64(),
    pa.string().id: pa.binary(),
}


def multiset(table: pa.Table) -> Counter[Row]:
    """How often each row is there. With a weight column: the sum of its weights, if that is not zero.

    NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; floats agree to 9 significant digits.

    >>> multiset(pa.table({"a": [1.0, 1.0, None]}))
    Counter({(1.0,): 2, (None,): 1})
    >>> multiset(pa.table({"a": [1, 1, 2], WEIGHT: [1, -1, -1]}))
    Counter({(2,): -1})
    """
    if WEIGHT not in table.column_names:
        return Counter(_rows(table, _near))
    counts: Counter[Row] = Counter()
    for row, weight in zip(_rows(table.drop_columns([WEIGHT]), _near), table[WEIGHT].to_pylist(), strict=True):
        counts[row] += weight
    return _without_zeros(counts)


def applied(old: pa.Table, delta: pa.Table) -> Counter[Row]:
    """What a change makes of a table. A negative count is a row that was taken away and never there."""
    counts = multiset(old)
    counts.update(multiset(delta))
    return _without_zeros(counts)


def weighted_difference(old: pa.Table, new: pa.Table) -> pa.Table:
    """The change from one table to another, netted: their columns and a weight of +1 or -1.

    >>> weighted_difference(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 3]})).to_pydict()
    {'a': [3, 1, 2], '__trickle_weight': [1, -1, -1]}
    """
    old = old.cast(new.schema)
    before, after = _rows(_numbered(old), _exact), _rows(_numbered(new), _exact)
    added = _beyond(after, Counter(before))
    removed = _beyond(before, Counter(after))
    rows = pa.concat_tables([new.take(pa.array(added, pa.int64())), old.take(pa.array(removed, pa.int64()))])
    weights = pa.array([1] * len(added) + [-1] * len(removed), pa.int64())
    return rows.append_column(WEIGHT, weights)


def _numbered(table: pa.Table) -> pa.Table:
    """The same with numbers for dates and times, bytes for texts: Python knows the years 1 to 9999, and UTF-8 only."""
    for place, field in enumerate(table.schema):
        if field.type.id in _NUMBERS:
            table = table.set_column(place, field.name, table.column(place).cast(_NUMBERS[field.type.id]))
    return table


def _beyond(rows: list[Row], others: Counter[Row]) -> list[int]:
    """The places of rows that have no partner among others."""
    left = others.copy()
    places = []
    for place, row in enumerate(rows):
        if left[row] > 0:
            left[row] -= 1
        else:
            places.append(place)
    return places


def _without_zeros(counts: Counter[Row]) -> Counter[Row]:
    return Counter({row: count for row, count in counts.items() if count})


def _rows(table: pa.Table, number: Callable[[float], Hashable]) -> list[Row]:
    columns = [[_frozen(value, number) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _frozen(value: Any, number: Callable[[float], Hashable]) -> Hashable:
    match value:
        case float():
            return _NAN if math.isnan(value) else number(value)
        case list():
            items = tuple(_frozen(item, number) for item in value)
            # Arrow gives a map as pairs, whose order means nothing, and everything else in lists as something else.
            return tuple(sorted(items, key=repr)) if value and isinstance(value[0], tuple) else items
        case tuple():
            return tuple(_frozen(item, number) for item in value)
        case dict():
            return tuple((name, _frozen(item, number)) for name, item in value.items())
        case _:
            hashable: Hashable = value
            return hashable


def _near(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") + 0.0


def _exact(value: float) -> float:
    return value + 0.0
