"""Which stream tables move together because they read each other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trickle.algebra.names import TableName
from trickle.catalog.records import Kind, Relation
from trickle.refresh.cycles import with_cycles
from trickle.refresh.lineage import Lineage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def name(text: str) -> TableName:
    return TableName.of([text])


def relation(number: int, text: str) -> Relation:
    return Relation(
        id=number,
        name=name(text),
        kind=Kind.STREAM_TABLE if number else Kind.TABLE,
        uid=text,
        location=text,
        storage_options={},
        query=None,
        key=(),
        comment=None,
        created_at=NOW,
        updated_at=NOW,
    )


@pytest.fixture
def lineage() -> Lineage:
    """a and b read each other, c reads b; s reads itself."""
    tables = {number: relation(number, text) for number, text in enumerate(("base", "a", "b", "c", "s"))}
    reads = {1: frozenset({0, 2}), 2: frozenset({1}), 3: frozenset({2}), 4: frozenset({4, 0})}
    return Lineage(tables, reads)


@pytest.mark.parametrize(
    "asked, moved",
    [("a", ["a", "b"]), ("b", ["b", "a"]), ("c", ["c"]), ("s", ["s"]), ("nowhere", ["nowhere"])],
)
def test_who_is_asked_for_brings_its_cycle(lineage: Lineage, asked: str, moved: list[str]) -> None:
    assert with_cycles(lineage, [name(asked)]) == [name(one) for one in moved]


def test_cycles_come_once(lineage: Lineage) -> None:
    assert with_cycles(lineage, [name("c"), name("b"), name("a")]) == [name("c"), name("b"), name("a")]
