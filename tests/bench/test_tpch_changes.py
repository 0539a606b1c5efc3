"""Change sets of TPC-H: how many orders change, and which."""

from __future__ import annotations

import pytest

from bench.tpch_changes import Changes, Chosen, order_key


def test_a_set_has_the_promised_parts() -> None:
    change = Changes(150_000).next(0.01)
    assert (change.inserts, len(change.updates), len(change.deletes)) == (1_050, 225, 225)
    assert change.orders == 1_500
    assert len(change.updates.single) == 3


def test_new_keys_are_above_all_others_and_copies_suffice() -> None:
    changes = Changes(15_000)
    first, second = changes.next(0.1), changes.next(0.1)
    assert first.first_key > order_key(15_000)
    assert second.first_key == first.first_key + first.inserts
    assert first.step * first.inserts <= 15_000


def test_no_order_is_chosen_twice() -> None:
    changes = Changes(15_000)
    chosen = [part for _ in range(5) for change in [changes.next(0.02)] for part in (change.updates, change.deletes)]
    numbers = [n for part in chosen for n in (*range(part.first, part.last + 1), *part.single)]
    assert len(numbers) == len(set(numbers)) == sum(len(part) for part in chosen)
    assert max(numbers) == 15_000


def test_the_tables_can_be_used_up() -> None:
    changes = Changes(100)
    with pytest.raises(SystemExit, match="no orders left"):
        for _ in range(3):
            changes.next(0.9)


def test_a_choice_in_sql() -> None:
    assert Chosen(8, 9, (1,)).condition("k") == "(k BETWEEN 32 AND 33 OR k IN (1))"
    assert Chosen(8, 9, ()).condition("k") == "k BETWEEN 32 AND 33"
