"""The fuse: every mode and edge of ``should_blow``, and what the gates make of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trickle.gates.facts import Delta, FuseFacts, FuseRating, Volume
from trickle.gates.fuse import FuseGate, StagedFuseGate, baseline_of, should_blow
from trickle.gates.verdict import Decision, Verdict
from trickle.testing.gates import Given, a_table

ADAPTIVE = FuseRating("adaptive")
STEADY = [Volume(100, 0)] * 10
NORMAL = [Volume(100 + n % 3 * 50, 20 + n % 2 * 10) for n in range(20)]


def blows(rating: FuseRating, volume: Volume, samples: list[Volume] | None = None, rows: int = 0) -> str | None:
    found = should_blow(rating, volume, samples or [], rows)
    return None if found is None else found.which


def test_without_a_fuse_nothing_blows() -> None:
    assert blows(FuseRating("none", ceiling=1, max_ratio=0.1), Volume(10**9, 10**9), NORMAL, 1) is None


def test_a_ceiling_counts_insertions_and_deletions_together_and_may_be_reached() -> None:
    rating = FuseRating("fixed", ceiling=100)
    assert blows(rating, Volume(60, 40)) is None
    assert blows(rating, Volume(60, 41)) == "ceiling"


def test_a_fixed_fuse_knows_no_baseline() -> None:
    assert blows(FuseRating("fixed"), Volume(10**9, 0), STEADY) is None
    assert blows(FuseRating("fixed", cold_start_ceiling=10), Volume(11, 0)) is None


def test_a_ratio_is_one_of_deletions_or_of_insertions() -> None:
    rating = FuseRating("fixed", max_ratio=0.5)
    assert blows(rating, Volume(0, 500), rows=1000) is None
    assert blows(rating, Volume(0, 501), rows=1000) == "ratio"
    assert blows(rating, Volume(501, 0), rows=1000) == "ratio"
    # An update of half of the rows is half, not all.
    assert blows(rating, Volume(500, 500), rows=1000) is None


def test_the_first_rows_of_an_empty_source_have_no_ratio() -> None:
    assert blows(FuseRating("fixed", max_ratio=0.5), Volume(1000, 0), rows=0) is None


def test_an_adaptive_fuse_blows_over_mean_and_some_deviations() -> None:
    inserted = [sample.inserted for sample in NORMAL]
    limit = fmean(inserted) + 3 * stdev(inserted)
    assert blows(ADAPTIVE, Volume(int(limit), 20), NORMAL) is None
    found = should_blow(ADAPTIVE, Volume(int(limit) + 1, 20), NORMAL, 0)
    assert found is not None
    assert found.which == "insertions"
    assert found.computed_threshold == pytest.approx(limit)
    assert found.baseline_mean == pytest.approx(fmean(inserted))
    assert found.baseline_stddev == pytest.approx(stdev(inserted))


def test_the_reason_tells_the_numbers_as_the_alert_does() -> None:
    # Half of the samples lie 340 below and half 340 above 1200, less what the deviation of a sample adds.
    samples = [Volume(0, 1200 - 323), Volume(0, 1200 + 323)] * 5
    found = should_blow(ADAPTIVE, Volume(0, 85_432), samples, 0)
    assert found is not None
    assert found.reason == "delta of 85432 deletions exceeds adaptive threshold 2221 (mean 1200, 3.0 sigma 1021)"


def test_sensitivity_moves_the_threshold() -> None:
    assert blows(replace(ADAPTIVE, sensitivity=2), Volume(270, 20), NORMAL) == "insertions"
    assert blows(replace(ADAPTIVE, sensitivity=4), Volume(270, 20), NORMAL) is None


def test_many_deletions_are_not_hidden_by_usual_insertions() -> None:
    assert blows(ADAPTIVE, Volume(0, 140), STEADY) == "deletions"
    assert blows(ADAPTIVE, Volume(125, 0), STEADY) is None


def test_a_table_that_always_changed_by_the_same_number_does_not_blow_at_one_more() -> None:
    assert blows(ADAPTIVE, Volume(101, 0), STEADY) is None
    assert blows(ADAPTIVE, Volume(2, 1), [Volume(1, 0)] * 10) is None
    # Three tenths of the mean is the room it has.
    assert blows(ADAPTIVE, Volume(130, 0), STEADY) is None
    assert blows(ADAPTIVE, Volume(131, 0), STEADY) == "insertions"


def test_a_few_deletions_in_a_table_that_never_had_any_pass() -> None:
    assert blows(ADAPTIVE, Volume(100, 25), STEADY) is None


def test_at_the_cold_start_only_ceilings_and_ratios_count() -> None:
    rating = replace(ADAPTIVE, cold_start_ceiling=1000)
    few = STEADY[:4]
    assert blows(rating, Volume(1000, 0), few) is None
    assert blows(rating, Volume(900, 101), few) == "cold_start"
    assert blows(replace(rating, cold_start_ceiling=0), Volume(10**9, 0), few) is None
    assert blows(replace(rating, ceiling=50), Volume(51, 0), few) == "ceiling"
    assert blows(replace(rating, max_ratio=0.1), Volume(0, 11), few, rows=100) == "ratio"
    # With one sample more there is a baseline, and no cold start.
    assert blows(rating, Volume(900, 101), STEADY[:5]) == "deletions"


def test_a_small_window_is_warm_as_soon_as_it_is_full() -> None:
    rating = replace(ADAPTIVE, window_size=3, cold_start_ceiling=10**6)
    assert blows(rating, Volume(1000, 0), STEADY[:2]) is None
    assert blows(rating, Volume(1000, 0), STEADY[:3]) == "insertions"


def test_a_ceiling_holds_where_the_baseline_has_drifted() -> None:
    drifted = [Volume(n * 1000, 0) for n in range(1, 21)]
    assert blows(ADAPTIVE, Volume(25_000, 0), drifted) is None
    assert blows(replace(ADAPTIVE, ceiling=20_000), Volume(25_000, 0), drifted) == "ceiling"


def test_a_window_forgets_and_ewma_follows() -> None:
    moved = [Volume(10, 0)] * 30 + [Volume(1000, 0)] * 20
    assert blows(ADAPTIVE, Volume(1100, 0), moved) is None
    ewma = replace(ADAPTIVE, baseline="ewma")
    assert blows(ewma, Volume(1100, 0), moved) is None
    # Ten refreshes after the jump, the old level is still half of the window and little of the fading mean.
    window = baseline_of(ADAPTIVE, [sample.inserted for sample in moved[:40]])
    faded = baseline_of(ewma, [sample.inserted for sample in moved[:40]])
    assert window is not None
    assert faded is not None
    assert faded.mean > window.mean
    assert blows(ADAPTIVE, Volume(1500, 0), moved) == "insertions"


counts = st.integers(0, 10**6)
volumes = st.builds(Volume, counts, counts)
ratings = st.builds(
    FuseRating,
    mode=st.sampled_from(["none", "fixed", "adaptive"]),
    ceiling=st.none() | st.integers(1, 10**6),
    max_ratio=st.none() | st.floats(0.01, 1),
    sensitivity=st.floats(0.1, 10),
    window_size=st.integers(2, 30),
    baseline=st.sampled_from(["window", "ewma"]),
    cold_start_ceiling=st.integers(0, 10**6),
)
pasts = st.lists(volumes, max_size=30)


@given(ratings, volumes, counts, counts, pasts, counts)
def test_what_blows_at_some_volume_blows_at_any_larger_one(
    rating: FuseRating, volume: Volume, more: int, gone: int, past: list[Volume], rows: int
) -> None:
    """So a pre-check with counts that are never too low can only let pass what the exact count lets pass."""
    larger = Volume(volume.inserted + more, volume.deleted + gone)
    if should_blow(rating, volume, past, rows):
        assert should_blow(rating, larger, past, rows)


@given(ratings, pasts, counts)
def test_nothing_that_changed_blows_no_fuse(rating: FuseRating, past: list[Volume], rows: int) -> None:
    assert should_blow(rating, Volume(0, 0), past, rows) is None


@given(ratings, volumes, pasts, counts)
def test_a_blow_is_over_its_threshold_and_tells_its_numbers(
    rating: FuseRating, volume: Volume, past: list[Volume], rows: int
) -> None:
    found = should_blow(rating, volume, past, rows)
    if found is not None:
        assert found.count > found.computed_threshold
        assert str(found.count) in found.reason
        assert (found.baseline_mean is None) == (found.which not in ("insertions", "deletions"))
        if found.baseline_mean is not None and found.baseline_stddev is not None:
            assert found.computed_threshold == found.baseline_mean + rating.sensitivity * found.baseline_stddev


@given(volumes, st.lists(volumes, min_size=5, max_size=30), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_less_sensitive_fuse_never_blows_where_a_more_sensitive_one_holds(
    volume: Volume, past: list[Volume], one: float, other: float
) -> None:
    low, high = sorted([one, other])
    if should_blow(replace(ADAPTIVE, sensitivity=high), volume, past, 0):
        assert should_blow(replace(ADAPTIVE, sensitivity=low), volume, past, 0)


@given(volumes, st.lists(volumes, min_size=5, max_size=40), st.lists(volumes, max_size=10))
def test_what_lies_before_the_window_does_not_matter(volume: Volume, past: list[Volume], old: list[Volume]) -> None:
    rating = replace(ADAPTIVE, window_size=5)
    assert should_blow(rating, volume, past, 0) == should_blow(rating, volume, old + past[-5:], 0)


# The gates.

OWN = FuseFacts("order_summary", FuseRating("fixed", ceiling=100), blown=False)
OF_SOURCE = replace(OWN, owner="orders")


def admitted(facts: Given, **table: object) -> Verdict:
    return FuseGate().evaluate(a_table(**table), facts)


def test_a_blown_fuse_blocks_and_nothing_is_counted() -> None:
    facts = Given(fuses=[replace(OWN, blown=True, blown_at=datetime(2026, 1, 1, tzinfo=UTC), blow_reason="too many")])
    found = admitted(facts)
    assert found.decision is Decision.BLOCK
    assert found.reason == "fuse of order_summary is blown since 2026-01-01 00:00:00 UTC: too many"
    assert not found.details["blows"]
    assert facts.asked == ["fuses"]


def test_a_fuse_that_was_reset_lets_one_refresh_pass() -> None:
    facts = Given(fuses=[replace(OWN, passes_once=True)])
    assert admitted(facts).proceeds
    assert "reset" in admitted(facts).reason


def test_the_first_fill_is_not_guarded_by_a_fuse_that_holds() -> None:
    assert admitted(Given(fuses=[OWN]), populated=False).proceeds
    assert not admitted(Given(fuses=[replace(OF_SOURCE, blown=True)]), populated=False).proceeds


def test_counts_of_the_log_within_the_rating_need_no_reading() -> None:
    facts = Given(fuses=[OWN], volume=Volume(50, 50))
    assert admitted(facts).proceeds
    assert facts.asked == ["fuses", "volume"]


def test_counts_of_the_log_over_the_rating_are_checked_by_reading() -> None:
    facts = Given(fuses=[OWN], volume=Volume(500, 500), exact_volume=Volume(5, 5))
    assert admitted(facts).proceeds
    assert facts.asked == ["fuses", "volume", "exact_volume"]


def test_an_unknown_count_is_read() -> None:
    assert not admitted(Given(fuses=[OWN], volume=None, exact_volume=Volume(0, 101))).proceeds
    assert admitted(Given(fuses=[OWN], volume=None, exact_volume=Volume(0, 100))).proceeds


def test_a_fuse_that_blows_has_all_the_alert_needs() -> None:
    past = [Volume(0, 1000), Volume(0, 1400)] * 5
    fuse = replace(OWN, rating=replace(ADAPTIVE, ceiling=None), samples=past)
    found = admitted(Given(fuses=[fuse], volume=None, exact_volume=Volume(0, 85_432)), manual=True)
    assert found.decision is Decision.BLOCK
    assert found.details["blows"] is True
    wanted = {"delta_row_count": 85_432, "baseline_mean": 1200.0, "ceiling": None, "owner": "order_summary"}
    assert wanted.items() <= found.details.items()
    assert found.details["blow_reason"] == found.reason
    assert found.details["computed_threshold"] == pytest.approx(1200 + 3 * found.details["baseline_stddev"])


def test_the_fuse_of_a_source_guards_what_is_below_and_is_named() -> None:
    facts = Given(
        fuses=[OWN, OF_SOURCE],
        volume={"order_summary": Volume(1, 1), "orders": None},
        exact_volume={"orders": Volume(0, 1000)},
    )
    found = admitted(facts).decisive
    assert found.details["owner"] == "orders"
    assert found.reason == "fuse of orders: delta of 1000 changed rows exceeds ceiling 100"


def test_the_first_fuse_that_holds_decides_and_the_rest_is_not_counted() -> None:
    facts = Given(fuses=[replace(OWN, blown=True), OF_SOURCE])
    assert len(admitted(facts).children) == 1 or not admitted(facts).children
    assert "volume" not in facts.asked


def test_tables_without_fuses_go_on() -> None:
    assert admitted(Given(fuses=[])).proceeds
    assert admitted(Given(fuses=[FuseFacts("order_summary", FuseRating(), blown=False)])).proceeds


def released(fuse: FuseFacts, delta: Delta, **table: object) -> Verdict:
    return StagedFuseGate().evaluate(a_table(**table), Given(fuses=[OF_SOURCE, fuse], delta=delta))


def test_a_staged_change_that_is_much_larger_than_that_of_its_sources_blows_the_fuse() -> None:
    found = released(OWN, Delta(0, 101))
    assert found.decision is Decision.BLOCK
    assert found.details["blows"] is True
    assert released(OWN, Delta(50, 50)).proceeds


def test_a_staged_change_is_compared_with_what_the_table_is_used_to() -> None:
    rating = replace(ADAPTIVE, max_ratio=0.9, cold_start_ceiling=10)
    fuse = replace(OWN, rating=rating, samples=STEADY, delta_samples=[Volume(5000, 5000)] * 10, table_rows=10**6)
    assert released(fuse, Delta(5000, 5000)).proceeds
    assert not released(fuse, Delta(5000, 15_000)).proceeds
    assert released(replace(fuse, table_rows=5000), Delta(5000, 5000)).proceeds
    assert not released(replace(fuse, table_rows=5000), Delta(0, 5000)).proceeds
    # Without a past there is no cold start: the sources' change was asked about already.
    assert released(replace(fuse, delta_samples=()), Delta(5000, 15_000)).proceeds


def test_a_staged_change_passes_a_fuse_that_was_reset_and_a_first_fill() -> None:
    assert released(replace(OWN, passes_once=True), Delta(0, 10**6)).proceeds
    assert released(OWN, Delta(10**6, 0), populated=False).proceeds
    assert StagedFuseGate().evaluate(a_table(), Given(fuses=[OF_SOURCE])).proceeds


def test_a_fuse_that_blew_while_the_change_was_computed_holds_it() -> None:
    assert not released(replace(OWN, blown=True), Delta(0, 0)).proceeds
