from __future__ import annotations

from datetime import datetime

import pytest

from tests.catalog.given import Given
from trickle.catalog import Action, Catalog, Initiator, IntentMember, history, intents
from trickle.errors import ConcurrentModification, InternalError


def member(table, position=0, **fields):
    return IntentMember(table.relation.id, position, '{"adds": []}', 1, None, **fields)


def test_an_intent_comes_back_whole_and_in_order(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        a, b = given.stream(tx, "a"), given.stream(tx, "b")
        refresh = history.start(
            tx, relation_id=a.relation.id, name="a", action=Action.FULL, initiated_by=Initiator.MANUAL, now=now
        )
        result = {"frontier": {"1": "9"}, "rows": [1, 2], "text": "it's \x00"}
        second = IntentMember(a.relation.id, 1, None, 2**40, refresh, result)
        added = intents.add(tx, [second, member(b, 0)], now)
        fixed = intents.add(tx, [member(given.stream(tx, "c"))], now, intent_id="mine")
    assert [m.relation_id for m in added.members] == [b.relation.id, a.relation.id]
    assert fixed.id == "mine"
    with catalog.read() as tx:
        assert sorted(intents.pending(tx), key=lambda i: i.id == "mine") == [added, fixed]
        assert intents.pending(tx, [a.relation.id]) == [added]
        assert intents.pending(tx, [a.relation.id, b.relation.id]) == [added]
        assert intents.pending(tx, []) == []
        assert intents.pending(tx, [999]) == []


def test_pending_intents_are_oldest_first(catalog: Catalog, given: Given) -> None:
    with catalog.write() as tx:
        late = intents.add(tx, [member(given.stream(tx, "a"))], given.later(1))
        early = intents.add(tx, [member(given.stream(tx, "b"))], given.now)
        assert intents.pending(tx) == [early, late]


def test_a_table_is_in_one_open_intent_only(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        a, b = given.stream(tx, "a"), given.stream(tx, "b")
        first = intents.add(tx, [member(a)], now)
        with pytest.raises(ConcurrentModification):
            intents.add(tx, [member(b, 0), member(a, 1)], now)
        # Nothing of the refused one is left, and the transaction lives on.
        assert intents.pending(tx) == [first]
        intents.add(tx, [member(b)], now)
        assert intents.remove(tx, first.id)
        intents.add(tx, [member(a)], now)


def test_an_intent_is_removed_once(catalog: Catalog, given: Given, now: datetime) -> None:
    with catalog.write() as tx:
        intent = intents.add(tx, [member(given.stream(tx, "a"))], now)
    with catalog.write() as tx:
        assert intents.remove(tx, intent.id) is True
        assert intents.remove(tx, intent.id) is False
        assert intents.pending(tx) == []


def test_an_intent_has_members(catalog: Catalog, now: datetime) -> None:
    with catalog.write() as tx, pytest.raises(InternalError):
        intents.add(tx, [], now)
