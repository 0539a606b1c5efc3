"""Which files may hold a row, from the log alone.

A file is left out only when its statistics or partition values prove that it holds no such row; what is unknown keeps
it. Statistics are bounds, not values: text may be cut to a prefix, timestamps to the millisecond, decimals may have
passed through floating point. Floating point itself proves nothing: NaN is greater than every number and in no maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from trickle.lake.datafile import DataFile
from trickle.lake.scan import pick
from trickle.lake.snapshot import Snapshot

Comparison = tuple[str, str, object]
"""A column, one of ``= <=> < <= > >= in``, ``is null``, ``is not null``, and a value (a sequence for ``in``)."""

_MILLISECOND = timedelta(milliseconds=1)
_EXACT_DIGITS = 15
_FLOAT_ERROR = Decimal("1e-15")


def prune(snapshot: Snapshot, predicate: Iterable[Comparison]) -> tuple[DataFile, ...]:
    """The files that may hold a row for which all comparisons are true."""
    tests = [(pick(snapshot.schema, [column])[0], op.lower(), value) for column, op, value in predicate]
    return tuple(
        file for file in snapshot.files if all(_may_hold(file, field, op, value) for field, op, value in tests)
    )


def overlapping(
    files: Sequence[DataFile], ranges: Mapping[str, tuple[object, object]], schema: StructType
) -> tuple[DataFile, ...]:
    """The files that may hold a row with every column in its range, ends included; None leaves an end open."""
    tests = [
        (pick(schema, [column])[0], op, bound)
        for column, (low, high) in ranges.items()
        for op, bound in ((">=", low), ("<=", high))
        if bound is not None
    ]
    return tuple(file for file in files if all(_may_hold(file, field, op, value) for field, op, value in tests))


def span(files: Sequence[DataFile], field: StructField) -> tuple[Any, Any] | None:
    """Bounds of a column over all files; None when they are not known."""
    found = [_facts(file, field) for file in files if file.rows]
    if not found or any(facts.low is None or facts.high is None for facts in found if facts.values):
        return None
    known = [facts for facts in found if facts.values]
    return (min(facts.low for facts in known), max(facts.high for facts in known)) if known else None


@dataclass(frozen=True)
class _Facts:
    """What is known of one column in one file."""

    low: Any
    high: Any
    """Bounds of the values that are not NULL; None when unknown."""
    nulls: bool
    """Whether there may be NULLs."""
    values: bool
    """Whether there may be anything else."""


def _may_hold(file: DataFile, field: StructField, op: str, value: object) -> bool:
    facts = _facts(file, field)
    if op == "is null" or (op == "<=>" and value is None):
        return facts.nulls
    if op == "is not null":
        return facts.values
    if value is None or not facts.values:
        return False
    if op == "in":
        return any(_may_hold(file, field, "=", one) for one in value) if isinstance(value, Iterable) else True
    known = _value(value, field.dataType)
    return known is None or _may_compare(facts, op, known)


def _may_compare(facts: _Facts, op: str, value: Any) -> bool:
    match op:
        case "=" | "<=>":
            return _reaches_down(facts, value) and _reaches_up(facts, value, strictly=False)
        case "<":
            return facts.low is None or bool(facts.low < value)
        case "<=":
            return _reaches_down(facts, value)
        case ">":
            return _reaches_up(facts, value, strictly=True)
        case ">=":
            return _reaches_up(facts, value, strictly=False)
    return True


def _reaches_down(facts: _Facts, value: Any) -> bool:
    return facts.low is None or bool(facts.low <= value)


def _reaches_up(facts: _Facts, value: Any, *, strictly: bool) -> bool:
    if facts.high is None:
        return True
    if isinstance(value, str):
        # The maximum may be the prefix of a longer text.
        return bool(value[: len(facts.high)] <= facts.high)
    return bool(facts.high > value if strictly else facts.high >= value)


def _facts(file: DataFile, field: StructField) -> _Facts:
    for name, text in file.partition.items():
        if name.lower() == field.name.lower():
            return _partition_facts(text, field.dataType)
    nulls = file.nulls.get(field.name)
    low = _value(file.minimum.get(field.name), field.dataType)
    high = _value(file.maximum.get(field.name), field.dataType)
    return _Facts(
        low=_widened(low, field.dataType, -1),
        high=_widened(high, field.dataType, +1),
        nulls=nulls != 0,
        values=nulls is None or file.rows is None or nulls != file.rows,
    )


def _partition_facts(text: str | None, kind: DataType) -> _Facts:
    if text is None or text == "":
        return _Facts(None, None, nulls=True, values=False)
    value = _value(text, kind)
    return _Facts(value, value, nulls=False, values=True)


def _widened(bound: Any, kind: DataType, direction: int) -> Any:
    if bound is None:
        return None
    if isinstance(kind, TimestampType | TimestampNTZType):
        return bound + _MILLISECOND if direction > 0 else bound
    if isinstance(kind, DecimalType) and kind.precision > _EXACT_DIGITS:
        return bound + direction * abs(bound) * _FLOAT_ERROR
    return bound


def _value(raw: object, kind: DataType) -> Any:
    """A comparable value from the log's spelling or from Python's own; None when it proves nothing."""
    convert = _converter(kind)
    if raw is None or convert is None:
        return None
    try:
        return convert(raw)
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        return None


def _converter(kind: DataType) -> Callable[[Any], Any] | None:
    match kind:
        case IntegralType():
            return _integer
        case DecimalType():
            return lambda raw: Decimal(str(raw))
        case BooleanType():
            return _boolean
        case DateType():
            return _date
        case TimestampType() | TimestampNTZType():
            return _instant
        case StringType() if kind == StringType():  # another collation has another order
            return _text
    return None


def _integer(raw: Any) -> Any:
    """Fractions are compared as they are: 2.5 lies between 2 and 3."""
    return int(raw) if isinstance(raw, str | int) else Decimal(str(raw))


def _boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if str(raw).lower() not in ("true", "false"):
        raise ValueError("not a boolean")
    return str(raw).lower() == "true"


def _date(raw: Any) -> date:
    if isinstance(raw, datetime):
        raise TypeError("a moment is no date before a time zone is chosen")
    return raw if isinstance(raw, date) else date.fromisoformat(raw)


def _instant(raw: Any) -> datetime:
    """A moment; one without a zone is taken as UTC, as in the log."""
    if isinstance(raw, date) and not isinstance(raw, datetime):
        raise TypeError("a date is no moment before a time zone is chosen")
    found = raw if isinstance(raw, datetime) else datetime.fromisoformat(raw)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError("not text")
    return raw
