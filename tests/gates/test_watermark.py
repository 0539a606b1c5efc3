"""Watermarks: complete together, or held back to where they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trickle.gates.facts import Watermark, WatermarkGroup
from trickle.gates.verdict import Decision, Verdict
from trickle.gates.watermark import WatermarkGate, alignment, held_position, held_positions
from trickle.testing.gates import a_table, tried

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(hour: float | None) -> datetime | None:
    return None if hour is None else START + timedelta(hours=hour)


def group(tolerance: float = 0, mode: str = "gate", **hours: float | None) -> WatermarkGroup:
    return made(hours, tolerance, mode)


def made(hours: Mapping[str, float | None], tolerance: float = 0, mode: str = "gate") -> WatermarkGroup:
    members = [Watermark(source, at(hour)) for source, hour in hours.items()]
    return WatermarkGroup("etl", timedelta(hours=tolerance), mode, members)


def asked(*groups: WatermarkGroup) -> Verdict:
    return tried(WatermarkGate(), watermark_groups=groups)


def test_equal_watermarks_are_aligned() -> None:
    found = alignment(group(orders=3, lines=3))
    assert found.aligned
    assert found.effective == at(3)
    assert found.reason == "group etl is complete up to 2026-01-01 03:00:00 UTC"


def test_a_lag_within_the_tolerance_is_aligned_at_the_slowest() -> None:
    found = alignment(group(orders=3, lines=2, tolerance=1))
    assert (found.aligned, found.effective, found.lag) == (True, at(2), timedelta(hours=1))


def test_a_lag_over_the_tolerance_names_both_ends() -> None:
    found = asked(group(orders=3, lines=1, returns=2, tolerance=1))
    assert found.decision is Decision.SKIP
    assert found.reason == (
        "watermarks of group etl are 2:00:00 apart, over the tolerance of 1:00:00: "
        "lines is at 2026-01-01 01:00:00 UTC, orders at 2026-01-01 03:00:00 UTC"
    )
    assert found.details["lag_seconds"] == 7200


def test_a_source_without_a_watermark_is_waited_for_however_large_the_tolerance() -> None:
    found = asked(group(orders=3, lines=None, tolerance=1000))
    assert found.decision is Decision.SKIP
    assert found.reason == "no watermark yet for lines of group etl"


def test_a_refresh_by_hand_waits_too() -> None:
    groups = [group(orders=3, lines=1)]
    assert not tried(WatermarkGate(), table=a_table(manual=True), watermark_groups=groups).proceeds


def test_holding_back_never_waits() -> None:
    assert asked(group(mode="hold_back", orders=3, lines=1)).reason == "group etl is read up to 2026-01-01 01:00:00 UTC"
    assert asked(group(mode="hold_back", orders=3, lines=None)).proceeds


def test_of_several_groups_each_must_be_aligned() -> None:
    assert asked(group(orders=3, lines=3), group(orders=3, returns=3)).proceeds
    found = asked(group(orders=3, lines=3), group(orders=3, returns=1))
    assert found.decision is Decision.SKIP
    assert [child.proceeds for child in found.children] == [True, False]


def test_tables_outside_of_groups_go_on() -> None:
    assert asked().proceeds


def said(*hours: float) -> list[Watermark]:
    return [Watermark("x", at(hour), f"p{number}") for number, hour in enumerate(hours)]


def test_what_is_ahead_is_held_back_to_its_newest_position_that_is_complete_everywhere() -> None:
    found = held_positions(group(orders=5, lines=3), {"orders": said(1, 2.5, 5), "lines": said(2, 3)})
    assert found == {"orders": "p1", "lines": "p1"}


def test_a_source_that_said_nothing_so_early_is_not_read_further() -> None:
    assert held_positions(group(orders=5, lines=3), {"orders": said(4, 5), "lines": said(3)})["orders"] is None


def test_while_one_source_has_no_watermark_nothing_is_complete_everywhere() -> None:
    found = held_positions(group(orders=5, lines=None), {"orders": said(4, 5)})
    assert found == {"orders": None, "lines": None}


def test_a_watermark_without_a_position_holds_at_the_one_before() -> None:
    history = [*said(1), Watermark("x", at(2), None)]
    assert held_position(group(orders=2), history) == "p0"


hours = st.integers(0, 48)


@given(st.lists(hours, min_size=1, max_size=6), st.integers(0, 48))
def test_a_group_is_aligned_when_every_pair_is_within_the_tolerance(found: list[int], tolerance: int) -> None:
    one = made({f"s{n}": hour for n, hour in enumerate(found)}, tolerance)
    pairs = all(abs(a - b) <= tolerance for a in found for b in found)
    assert alignment(one).aligned == pairs
    assert alignment(one).effective == at(min(found))
    assert asked(one).proceeds == pairs


@given(st.lists(st.none() | hours, min_size=1, max_size=6), st.integers(0, 48), st.data())
def test_a_larger_tolerance_never_unaligns(found: list[int | None], tolerance: int, data: st.DataObject) -> None:
    members = {f"s{n}": hour for n, hour in enumerate(found)}
    wider = data.draw(st.integers(tolerance, 100))
    assert alignment(made(members, wider)).aligned >= alignment(made(members, tolerance)).aligned


@given(st.lists(st.lists(hours, min_size=1, max_size=8).map(sorted), min_size=1, max_size=5))
def test_a_held_position_is_the_newest_that_is_complete_everywhere(histories: list[list[int]]) -> None:
    recorded = {f"s{n}": said(*found) for n, found in enumerate(histories)}
    one = made({f"s{n}": found[-1] for n, found in enumerate(histories)}, mode="hold_back")
    effective = min(found[-1] for found in histories)
    for number, (source, position) in enumerate(sorted(held_positions(one, recorded).items())):
        complete = [place for place, hour in enumerate(histories[number]) if hour <= effective]
        assert source == f"s{number}"
        assert position == (f"p{complete[-1]}" if complete else None)


@given(st.lists(st.lists(hours, min_size=1, max_size=8).map(sorted), min_size=2, max_size=5), hours)
def test_advancing_a_watermark_never_takes_a_position_back(histories: list[list[int]], further: int) -> None:
    def held(found: list[list[int]]) -> dict[str, str | None]:
        members = {f"s{n}": one[-1] for n, one in enumerate(found)}
        return held_positions(made(members, mode="hold_back"), {f"s{n}": said(*h) for n, h in enumerate(found)})

    before = held(histories)
    after = held([[*histories[0], histories[0][-1] + further], *histories[1:]])
    for source, position in before.items():
        assert position is None or int((after[source] or "p-1")[1:]) >= int(position[1:])
