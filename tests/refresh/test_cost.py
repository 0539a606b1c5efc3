"""What a refresh is expected to cost, from those before it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trickle.refresh.cost import Estimate, Sample, by_changes, estimate, in_full


def full(ms: float, source_rows: int = 1_000) -> Sample:
    return Sample(False, ms, 0, source_rows)


def changes(ms: float, rows: int = 10) -> Sample:
    return Sample(True, ms, rows, 1_000)


def chosen(*samples: Sample, rows: int | None = 10) -> Estimate:
    """For a change of some rows of a thousand; the samples from the newest."""
    return estimate(samples, rows, 1_000, 0.15)


def test_a_share_decides_until_both_ways_are_known():
    assert chosen(full(100)).code == "CHANGE_RATIO"
    assert chosen(changes(100), changes(100)).code == "CHANGE_RATIO"
    assert chosen(changes(50), full(100)).code == "CHANGE_RATIO"
    assert not chosen(full(100)).in_full
    assert chosen(full(100), rows=200).in_full


def test_two_refreshes_by_changes_are_enough():
    assert chosen(changes(300), changes(900), full(100)).in_full
    assert not chosen(changes(300), changes(30), full(100)).in_full


def test_the_first_run_of_a_plan_does_not_count_when_a_later_one_is_quicker():
    assert by_changes([changes(100), changes(120), changes(900)], 10) == 100
    assert in_full([full(200), full(90), full(900)], 1_000) == 90


@pytest.mark.parametrize("in_full, by_changes", [(0, 0), (0, 5), (5, 0)])
def test_a_clock_that_stood_still_or_was_set_back_is_no_obstacle(in_full: float, by_changes: float):
    given = chosen(*[changes(by_changes)] * 3, full(in_full))
    assert (given.code, given.in_full) == ("COST_MODEL", in_full < by_changes)


def test_only_the_latest_count():
    assert by_changes([*[changes(200)] * 3, changes(50)], 10) == 200
    assert in_full([*[full(200)] * 3, full(50)], 1_000) == 200


def test_a_full_refresh_grows_with_its_sources():
    assert in_full([full(100, source_rows=500)], 2_000) == 400


def test_the_time_of_a_size_that_was_not_seen_lies_between_those_that_were():
    seen = [changes(110, 10), changes(200, 100), changes(1_100, 1_000)]
    assert by_changes(seen, 300) == by_changes(seen[::-1], 300)
    assert 250 < (by_changes(seen, 300) or 0) < 600
    assert by_changes(seen, 100) == 200
    assert by_changes(seen[:2], 1_000) is None


def test_beyond_what_was_seen_the_time_grows_as_it_did_and_not_faster_than_the_rows():
    seen = [changes(100, 10), changes(200, 100), changes(400, 1_000)]
    assert by_changes(seen, 10_000) == pytest.approx(800)
    assert by_changes(seen, 16_001) is None
    steep = [changes(100, 10), changes(200, 100), changes(9_000, 1_000)]
    assert by_changes(steep, 10_000) == pytest.approx(90_000)


def test_one_size_tells_about_others_too():
    seen = [changes(100, 10), changes(120, 12), changes(130, 11)]
    assert by_changes(seen, 44) == pytest.approx(240)
    assert by_changes(seen, 1) == 60


def test_more_rows_are_not_expected_to_be_quicker():
    seen = [changes(500, 10), changes(100, 100), changes(200, 1_000)]
    assert by_changes(seen, 30) == pytest.approx(100)


def test_a_cold_refresh_of_a_size_does_not_count_when_a_warm_one_is_known():
    seen = [changes(100, 10), changes(900, 11), changes(200, 100), changes(950, 100)]
    assert by_changes(seen, 1_000) == pytest.approx(400)


def refreshes_until_tried(past: Sequence[Sample], again: Sample, *, in_full: bool) -> int:
    """How often one way is chosen before the other one is tried."""
    count = 0
    while chosen(*past).in_full is not in_full:
        past = [again, *past]
        count += 1
    return count


def test_changes_that_were_slower_are_tried_again_after_twice_as_many_full_refreshes():
    past = [changes(150), changes(150), full(100), full(100)]
    assert refreshes_until_tried(past, full(100), in_full=False) == 4
    assert refreshes_until_tried([changes(150), *past], full(100), in_full=False) == 8
    assert "the other way" in chosen(*[full(100)] * 4, *past).reason


def test_changes_of_a_size_that_was_never_seen_are_tried_at_once_if_they_may_be_quicker():
    seen = [changes(100, 10), changes(200, 100), changes(400, 1_000)]
    assert not chosen(full(900), *seen, rows=10_000).in_full
    assert not chosen(full(270), *seen, rows=10_000).in_full
    assert chosen(full(260), *seen, rows=10_000).in_full


def test_changes_of_a_size_that_was_never_seen_are_tried_after_what_they_are_expected_to_cost():
    seen = [full(100), changes(100, 10), changes(200, 100), changes(400, 1_000)]
    in_full = 0
    while chosen(*seen, rows=10_000).in_full:
        seen = [full(100), *seen]
        in_full += 1
    assert in_full == 7


def test_a_refresh_that_found_nothing_to_do_does_not_make_larger_changes_look_slow():
    seen = [changes(5, 10), changes(190, 11), changes(200, 9), *[changes(210, 100)] * 3]
    assert (by_changes(seen, 1_000) or 0) < 250


def test_full_refreshes_are_tried_once_when_only_the_first_fill_is_known():
    assert refreshes_until_tried([changes(50), changes(50), full(74)], changes(50), in_full=True) == 1
    assert not chosen(*[changes(50)] * 20, full(76)).in_full
    tried = chosen(*[changes(50)] * 3, full(74))
    assert (tried.in_full, tried.code) == (True, "COST_MODEL")


def test_the_first_fill_is_compared_with_refreshes_that_are_not_cold():
    assert not chosen(changes(80), changes(90), full(100)).in_full
    assert not chosen(changes(60), changes(80), changes(90), full(100)).in_full


def test_full_refreshes_are_tried_again_when_they_take_about_as_long():
    past = [full(55), changes(50), changes(50), full(100)]
    assert refreshes_until_tried(past, changes(50), in_full=True) == 2
    assert refreshes_until_tried([full(55), *past], changes(50), in_full=True) == 4
    assert not chosen(*[changes(50)] * 15, full(63), full(100)).in_full


def test_what_is_hopeless_is_not_tried_again():
    assert chosen(*[full(100)] * 20, changes(301), changes(400)).in_full


def test_a_number_of_rows_that_nobody_knows_goes_by_changes():
    assert chosen(full(1), changes(100), changes(100), rows=None).code == "CHANGES_UNCOUNTED"
