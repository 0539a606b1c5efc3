from __future__ import annotations

import pytest

from tests.sql.build.given import shown


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("NOT (a IN (SELECT d FROM u) OR b > 5)", ["apply anti on COALESCE(a = d, TRUE)", "filter NOT (b > 5)"]),
        ("NOT NOT a IN (SELECT d FROM u)", ["apply semi on a = d"]),
        ("(a IN (SELECT d FROM u)) = false", ["apply anti on COALESCE(a = d, TRUE)"]),
        ("NOT ((a IN (SELECT d FROM u)) = false)", ["apply semi on a = d"]),
        (
            "NOT (a IN (SELECT d FROM u) AND b > 5)",
            ["filter (COALESCE(NOT mark, FALSE)) OR (NOT (b > 5))", "apply mark on a = d as mark"],
        ),
        (
            "CASE WHEN NOT (EXISTS (SELECT d FROM u) AND a = 1) THEN b = 2 END",
            ["filter CASE WHEN ((NOT mark) OR (NOT (a = 1))) THEN b = 2 END", "apply mark as mark"],
        ),
    ],
)
def test_not_moves_to_the_subquery(condition: str, expected: list[str]) -> None:
    lines = [line.strip() for line in shown(f"SELECT b FROM t WHERE {condition}").split("\n")]
    assert lines[1 : 1 + len(expected)] == expected


def test_conditions_without_subqueries_stay_as_they_are() -> None:
    assert "filter NOT (a = 1 AND b = 2)" in shown("SELECT b FROM t WHERE NOT (a = 1 AND b = 2)")
