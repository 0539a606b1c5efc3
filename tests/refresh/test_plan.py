"""What a refresh will do, decided from facts alone."""

from __future__ import annotations

from dataclasses import replace

from trickle.catalog.records import Action
from trickle.refresh.plan import Facts, SourceFact, choose

STILL = SourceFact("a", "1@x", "1@x", 0)
MOVED = SourceFact("b", "1@x", "2@x", None)
REWRITTEN = SourceFact("c", "1@x", "2@x", 0)
KEPT = Facts(populated=True, needs_reinitialize=False, always_refresh=False, force=False, sources={1: STILL})


def test_nothing_moved_is_nothing_to_do() -> None:
    choice = choose(KEPT)
    assert (choice.action, choice.reason, choice.moves) == (Action.NO_DATA, "no source has changed", False)


def test_a_source_that_moved_without_a_change_of_rows_only_moves_the_frontier() -> None:
    choice = choose(replace(KEPT, sources={1: STILL, 3: REWRITTEN}))
    assert (choice.action, choice.moves) == (Action.NO_DATA, True)


def test_changed_sources_are_named() -> None:
    other = replace(MOVED, name="aa", changed_rows=7)
    choice = choose(replace(KEPT, sources={1: STILL, 2: MOVED, 3: other}))
    assert (choice.action, choice.reason) == (Action.FULL, "changed: aa, b")


def test_the_first_fill_is_a_rebuild_when_the_definition_was_changed_before_it() -> None:
    empty = replace(KEPT, populated=False, force=True, sources={})
    assert choose(empty).reason == "first fill"
    assert choose(replace(empty, needs_reinitialize=True)).action is Action.REINITIALIZE


def test_a_rebuild_comes_before_force_and_changes() -> None:
    facts = replace(KEPT, needs_reinitialize=True, force=True, sources={2: MOVED})
    assert choose(facts).action is Action.REINITIALIZE


def test_force_and_time_compute_without_a_change() -> None:
    assert choose(replace(KEPT, force=True)).reason == "forced"
    assert choose(replace(KEPT, always_refresh=True)).reason == "the query depends on time or chance"
