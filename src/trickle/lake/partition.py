"""Partition values: text in the log, typed in the rows.

The protocol's serialisation is close to what Spark's CAST reads; here it is checked and brought to exactly that, so
that a session in another time zone or without ANSI mode reads the same values. Empty text is NULL for every type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from trickle.errors import CorruptTable

_DATE = re.compile(r"[+-]?\d{4,6}-\d{1,2}-\d{1,2}\Z")
_TIMESTAMP = re.compile(
    r"(?P<date>[+-]?\d{4,6}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<time>\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d{1,9})?))?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?\Z"
)
_ESCAPED_BYTES = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+\Z")


def sql_text(value: str | None, kind: DataType, column: str) -> str | None:
    """The text from which ``typed`` makes the value; None for NULL. CorruptTable when it is no value of the type.

    >>> sql_text("2024-02-29 12:00:00", TimestampType(), "p")
    '2024-02-29 12:00:00Z'
    """
    if value is None or value == "":
        return None
    try:
        return _converter(kind)(value)
    except (ValueError, InvalidOperation) as error:
        raise CorruptTable(
            f"partition value {value!r} of column {column!r} is not of type {kind.simpleString()}"
        ) from error


def typed(text: Column, kind: DataType) -> Column:
    """The value of the column's type from the text that ``sql_text`` made."""
    return F.unhex(text) if isinstance(kind, BinaryType) else text.cast(kind)


def _converter(kind: DataType) -> Callable[[str], str]:
    match kind:
        case StringType():
            return str
        case IntegralType():
            return lambda value: str(int(value))
        case DecimalType():
            return lambda value: format(Decimal(value), "f")
        case FloatType() | DoubleType():
            return _number
        case BooleanType():
            return _boolean
        case DateType():
            return _date
        case TimestampType():
            return _timestamp
        case TimestampNTZType():
            return _timestamp_ntz
        case BinaryType():
            return _hexadecimal
    raise ValueError(f"{kind.simpleString()} cannot be a partition column")


def _number(value: str) -> str:
    float(value)
    return value


def _boolean(value: str) -> str:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower()


def _date(value: str) -> str:
    if not _DATE.match(value):
        raise ValueError(value)
    return value


def _timestamp(value: str) -> str:
    """Without a zone the writer's zone is meant, which nobody knows: UTC, as delta-rs takes it."""
    found = _TIMESTAMP.match(value)
    if not found:
        raise ValueError(value)
    return f"{found['date']} {found['time'] or '00:00:00'}{found['zone'] or 'Z'}"


def _timestamp_ntz(value: str) -> str:
    found = _TIMESTAMP.match(value)
    if not found or found["zone"] not in (None, "Z"):
        raise ValueError(value)
    return f"{found['date']} {found['time'] or '00:00:00'}"


def _hexadecimal(value: str) -> str:
    """Spark writes the bytes as they are, delta-rs spells each as a backslash, u and four digits."""
    if _ESCAPED_BYTES.match(value):
        return bytes(int(digits, 16) for digits in value.split("\\u")[1:]).hex()
    return value.encode().hex()
