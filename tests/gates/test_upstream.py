"""Something new to read, or not."""

from __future__ import annotations

from typing import Any

from trickle.gates.facts import HeldUpstream, SourceMove
from trickle.gates.upstream import UpstreamGate
from trickle.gates.verdict import Decision, Verdict
from trickle.testing.gates import Given, a_table, tried


def source(before: str | None, now: str | None, inserted: int | None = None, **more: Any) -> SourceMove:
    return SourceMove("orders", 1, before, now, inserted, inserted, **{"exact": False, **more})


def asked(*sources: SourceMove, **table: Any) -> Verdict:
    return tried(UpstreamGate(), table=a_table(**table), held_upstream=[], sources=sources)


def test_a_source_that_moved_is_a_reason() -> None:
    found = asked(source("3", "5", 10))
    assert found.proceeds
    assert found.reason == "changed: orders"


def test_without_changes_there_is_nothing_to_do() -> None:
    assert asked(source("3", "3")).decision is Decision.SKIP
    assert asked(source("3", "3")).reason == "no source has changed"


def test_a_source_that_moved_without_changing_is_no_reason_when_that_is_certain() -> None:
    assert asked(source("3", "5", 0, exact=True)).decision is Decision.SKIP
    assert asked(source("3", "5", 0, exact=False)).proceeds


def test_a_source_that_moved_by_an_unknown_number_of_rows_is_a_reason() -> None:
    assert asked(source("3", "5", None)).proceeds


def test_a_query_that_depends_on_time_goes_on_without_changes() -> None:
    assert asked(source("3", "3"), always_refresh=True).proceeds


def test_a_table_to_be_filled_goes_on_without_changes() -> None:
    assert asked(source("3", "3"), needs_reinitialize=True).proceeds
    assert asked(source(None, "3"), populated=False).proceeds


def test_a_source_without_contents_is_waited_for() -> None:
    assert asked(source(None, None), populated=False).decision is Decision.SKIP


def test_what_is_held_upstream_holds_its_readers_though_others_have_moved() -> None:
    held = HeldUpstream("order_summary", "BLOCK", "held by its fuse")
    found = tried(UpstreamGate(), held_upstream=[held], sources=[source("3", "5", 10)])
    assert found.decision is Decision.SKIP
    assert found.reason == "upstream order_summary is held: held by its fuse"


def test_a_refresh_by_hand_takes_the_sources_as_they_are() -> None:
    facts = Given()
    assert UpstreamGate().evaluate(a_table(manual=True), facts).proceeds
    assert facts.asked == []
