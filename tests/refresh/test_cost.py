"""What a refresh is expected to cost, from those before it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trickle.refresh.cost import Estimate, Sample, by_changes, estimate, in_full


def full(ms: float, source_rows: int = 1_000, rows: int = 10) -> Sample:
    return Sample(False, ms, rows, source_rows)


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
    assert in_full([full(100, source_rows=500_000)], 2_000_000) == 400


def test_a_full_refresh_of_a_few_rows_takes_what_it_costs_to_begin():
    assert in_full([full(100, source_rows=10)], 100_000) == 100
    assert in_full([full(100, source_rows=10)], 1_000_000) == 1_000


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
        assert count < 1_000, "it is never tried"
    return count


def played(past: Sequence[Sample], full_ms: float, changes_ms: float, count: int, rows: int = 10) -> list[bool]:
    """Which of so many refreshes went in full, from the first, when they take what they take; 80 are remembered."""
    found = []
    for _ in range(count):
        found.append(chosen(*past, rows=rows).in_full)
        past = [full(full_ms, rows=rows) if found[-1] else changes(changes_ms, rows), *past][:80]
    return found


def test_changes_that_were_slower_are_tried_again_after_twice_as_many_full_refreshes():
    past = [changes(140), changes(140), full(100), full(100)]
    assert refreshes_until_tried(past, full(100), in_full=False) == 2
    again = [changes(140), *[full(100)] * 2, *past]
    assert refreshes_until_tried(again, full(100), in_full=False) == 4
    assert "the other way" in chosen(*[full(100)] * 4, *again).reason


def test_a_long_run_is_one_try():
    busy = [*[changes(600)] * 3, full(300), *[changes(200)] * 60]
    assert played(busy, 300, 200, 20) == [True] * 17 + [False] * 3


def test_one_cold_try_does_not_condemn_a_size():
    smaller = [changes(20, 1), changes(20, 1)]
    assert played([changes(300), full(60), *smaller], 60, 50, 9) == [True] * 7 + [False] * 2


def test_a_full_refresh_is_tried_though_the_first_fill_was_very_slow():
    found = played([*[changes(300)] * 3, full(500)], 100, 300, 40)
    assert found.index(True) == 11
    assert found[-20:].count(True) >= 19


def test_a_full_refresh_that_would_cost_more_than_a_share_of_what_was_spent_is_not_tried():
    assert not any(played([*[changes(50)] * 3, full(600)], 600, 50, 78))


def test_changes_beyond_the_threshold_are_tried_after_some_full_refreshes():
    found = played([full(500)], 500, 50, 20, rows=200)
    assert found == [*[True] * 4, False, *[True] * 8, *[False] * 7]
    words = chosen(*[full(500, rows=200)] * 4, rows=200)
    assert (words.code, words.in_full) == ("CHANGE_RATIO", False)
    assert "to see how long that takes" in words.reason


def test_changes_far_beyond_the_threshold_are_not_tried():
    assert all(played([full(500)], 500, 50, 40, rows=450))


def test_large_changes_among_small_ones_are_tried_too():
    past: list[Sample] = []
    for _ in range(4):
        past = [*[changes(10)] * 3, full(500, rows=200), *past]
    assert not chosen(*past, rows=200).in_full
    assert chosen(*past[4:], rows=200).in_full


def test_changes_of_a_size_that_was_never_seen_are_tried_at_once_if_they_may_be_quicker():
    seen = [changes(100, 10), changes(200, 100), changes(400, 1_000)]
    assert not chosen(full(900), *seen, rows=10_000).in_full
    assert not chosen(full(270), *seen, rows=10_000).in_full
    assert chosen(full(260), *seen, rows=10_000).in_full


def test_changes_of_a_size_that_was_never_seen_are_tried_after_what_they_are_expected_to_cost():
    past = [full(100), changes(100, 10), changes(200, 100), changes(400, 1_000)]
    found = played(past, 100, 50, 20, rows=10_000)
    # 800 ms are expected, which eight full refreshes take.
    assert found.index(False) == 8
    assert not any(found[9:])


def test_a_refresh_that_found_nothing_to_do_does_not_make_larger_changes_look_slow():
    seen = [changes(5, 10), changes(190, 11), changes(200, 9), *[changes(210, 100)] * 3]
    assert (by_changes(seen, 1_000) or 0) < 250


def test_full_refreshes_are_tried_once_when_only_the_first_fill_is_known():
    assert refreshes_until_tried([changes(50), changes(50), full(74)], changes(50), in_full=True) == 1
    assert not chosen(*[changes(50)] * 5, full(76)).in_full
    tried = chosen(*[changes(50)] * 3, full(74))
    assert (tried.in_full, tried.code) == (True, "COST_MODEL")


def test_the_first_fill_is_compared_with_refreshes_that_are_not_cold():
    assert not chosen(changes(80), changes(90), full(100)).in_full
    assert not chosen(changes(60), changes(80), changes(90), full(100)).in_full


def test_full_refreshes_are_tried_again_when_they_take_about_as_long():
    past = [full(55), changes(50), changes(50), full(100)]
    assert refreshes_until_tried(past, changes(50), in_full=True) == 2
    again = [full(55), *[changes(50)] * 2, *past]
    assert refreshes_until_tried(again, changes(50), in_full=True) == 4
    assert not chosen(*[changes(50)] * 9, full(63), full(100)).in_full


def test_what_is_hopeless_is_not_tried_again():
    assert chosen(*[full(100)] * 20, changes(301), changes(400)).in_full


def test_inner_tables_are_brought_up_when_full_refreshes_have_cost_as_much():
    # Small changes after large ones that were refreshed in full.
    past = [*[full(200, rows=10_000)] * 2, *[changes(900, 10_000)] * 3, *[changes(50)] * 3]
    in_full = []
    for _ in range(10):
        found = estimate(past, 10, 1_000, 0.15, is_behind=not past[0].by_changes)
        in_full.append(found.in_full)
        past = [full(200) if found.in_full else changes(50), *past]
    # 150 ms more each time, until they make up for the 1,200 that catching up takes.
    assert in_full == [*[True] * 8, *[False] * 2]
    assert "inner tables would take" in estimate(past[10:], 10, 1_000, 0.15, is_behind=True).reason


def test_a_size_that_was_never_seen_is_seen_before_full_refreshes_are_tried():
    past = [*[changes(50)] * 6, full(160)]
    assert played(past, 160, 70, 4, rows=100) == [False] * 4
    behind = [full(160, rows=100), *past]
    assert not estimate(behind, 100, 1_000, 0.15, is_behind=True).in_full


def test_a_number_of_rows_that_nobody_knows_goes_by_changes():
    assert chosen(full(1), changes(100), changes(100), rows=None).code == "CHANGES_UNCOUNTED"
