"""Values as JSON and as text."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SPELLED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_json(value: object) -> object:
    """A value with JSON's own types: dates in ISO 8601, decimals as text, bytes in base64.

    >>> to_json({"paid": Decimal("1E+2"), "on": date(2024, 2, 29), "key": b"abc", "rate": float("nan")})
    {'paid': '100', 'on': '2024-02-29', 'key': 'YWJj', 'rate': 'NaN'}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _float(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {_key(key): to_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [to_json(inner) for inner in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return str(value)


def _key(key: object) -> str:
    """A key of a map; JSON has text only."""
    return key if isinstance(key, str) else to_text(key)


def to_text(value: object) -> str:
    r"""A value on one line. Control characters are spelled out: data must not steer a terminal.

    >>> to_text("a\nb\x1b[2J"), to_text(True), to_text([1, None]), to_text(b"\n")
    ('a\\nb\\x1b[2J', 'true', '[1, null]', "X'0A'")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            return value.isoformat(sep=" ")
        case Mapping() | list() | tuple():
            return _one_line(json.dumps(to_json(value), ensure_ascii=False))
        case _:
            return _one_line(str(value))


def is_number(value: object) -> bool:
    """Whether a value is shown at the right."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: _SPELLED.get(found[0], f"\\x{ord(found[0]):02x}"), text)
