from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from trickle.cli.values import to_json, to_text

MOMENT = datetime(2024, 2, 29, 12, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        (1.5, 1.5),
        (float("-inf"), "-Infinity"),
        (Decimal("0E-18"), "0.000000000000000000"),
        (b"\x00\xff", "AP8="),
        (date(1, 1, 1), "0001-01-01"),
        (time(1, 2, 3), "01:02:03"),
        (MOMENT, "2024-02-29T12:00:00.500000+00:00"),
        ([Decimal("1.10"), None], ["1.10", None]),
        ({1: date(2024, 1, 1)}, {"1": "2024-01-01"}),
        (timedelta(days=1), "1 day, 0:00:00"),
    ],
)
def test_every_value_has_a_form_in_json(value: object, expected: object) -> None:
    assert to_json(value) == expected
    json.dumps(to_json(value), allow_nan=False)


def test_rows_become_objects() -> None:
    @dataclass(frozen=True)
    class Row:
        name: str
        at: datetime

    assert to_json(Row("a", MOMENT)) == {"name": "a", "at": MOMENT.isoformat()}


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, "NULL"),
        (False, "false"),
        (0.1, "0.1"),
        (float("nan"), "NaN"),
        (Decimal("1E+3"), "1000"),
        (b"\x0a", "X'0A'"),
        (MOMENT, "2024-02-29 12:00:00.500000+00:00"),
        ({"a": [1, b"x"]}, '{"a": [1, "eA=="]}'),
        ("größe 数", "größe 数"),
    ],
)
def test_every_value_has_a_form_for_people(value: object, expected: str) -> None:
    assert to_text(value) == expected


def test_a_value_cannot_steer_the_terminal() -> None:
    assert to_text("red\x1b[31m\r\nend\x07\x9b") == "red\\x1b[31m\\r\\nend\\x07\\x9b"
