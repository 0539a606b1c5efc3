"""Sources that are being loaded."""

from __future__ import annotations

from datetime import UTC, datetime

from trickle.gates.facts import GatedSource
from trickle.gates.source_gate import SourceGate
from trickle.gates.verdict import Decision
from trickle.testing.gates import a_table, tried

LOADING = GatedSource("orders", datetime(2026, 1, 1, tzinfo=UTC), "ada", "initial load")


def test_without_gated_sources_the_refresh_goes_on() -> None:
    assert tried(SourceGate(), gated_sources=[]).proceeds


def test_a_gated_source_holds_what_reads_it_also_by_hand() -> None:
    found = tried(SourceGate(), table=a_table(manual=True), gated_sources=[LOADING])
    assert found.decision is Decision.SKIP
    assert found.reason == "source orders is gated by ada since 2026-01-01 00:00:00 UTC (initial load)"


def test_all_gated_sources_are_named() -> None:
    found = tried(SourceGate(), gated_sources=[LOADING, GatedSource("lines", None, None, None)])
    assert found.details["sources"] == ["orders", "lines"]
    assert found.reason.endswith("; source lines is gated")
