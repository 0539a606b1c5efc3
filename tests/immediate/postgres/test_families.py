"""Which stream tables share a lock."""

from __future__ import annotations

from trickle.immediate.postgres.families import relatives
from trickle.immediate.postgres.registry import Record


def record(number: int, *sources: int, by_group: bool = False, family: int | None = None) -> Record:
    return Record(number, 100 + number, "public", f"s{number}", "", sources, family or number, (), by_group)


def numbers(records: list[Record]) -> list[int]:
    return [each.number for each in records]


def test_one_that_stands_alone() -> None:
    assert relatives([record(1, 7)], {8}, by_group=False) == []


def test_those_that_are_read() -> None:
    assert numbers(relatives([record(1, 7, by_group=True), record(2, 8)], {101}, by_group=True)) == [1]


def test_those_that_read_the_same_table() -> None:
    assert numbers(relatives([record(1, 7), record(2, 9)], {7, 8}, by_group=False)) == [1]


def test_by_group_nobody_else_matters() -> None:
    assert relatives([record(1, 7), record(2, 7, by_group=True)], {7}, by_group=True) == []
    assert relatives([record(2, 7, by_group=True)], {7}, by_group=False) == []


def test_relatives_of_relatives() -> None:
    known = [record(1, 7), record(2, 7, 8), record(3, 8, 9), record(4, 55), record(5, 103, family=3)]
    assert numbers(relatives(known, {7}, by_group=False)) == [1, 2, 3, 5]
