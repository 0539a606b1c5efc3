"""When stream tables are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from trickle.errors import InvalidOption
from trickle.refresh.schedule import check_schedule
from trickle.scheduler.schedules import (
    FASTEST,
    SLOWEST,
    TIERS,
    Cron,
    Effective,
    Every,
    Scheduled,
    due,
    effective_schedules,
    next_fire,
    parse_schedule,
    policy_of,
    tightness,
    unit_is_due,
)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def cron(text: str, zone: str = "UTC") -> Cron:
    found = parse_schedule(text, zone)
    assert isinstance(found, Cron)
    return found


def alone(schedule: str, tier: str = "hot", zone: str = "UTC") -> Effective:
    return effective_schedules({"t": Scheduled(schedule, tier)}, {}, zone=zone)["t"]


def is_due(schedule: str, last: datetime | None, now: datetime, tier: str = "hot", backoff: float = 1) -> bool:
    return due(alone(schedule, tier), last, now, backoff=backoff).due


# Durations.


def test_a_duration_is_due_when_it_has_passed() -> None:
    assert not is_due("5s", NOON, NOON + timedelta(seconds=4.9))
    assert is_due("5s", NOON, NOON + timedelta(seconds=5))
    found = due(alone("1h30m"), NOON, NOON)
    assert (found.schedule, found.next_at) == ("1h30m", NOON + timedelta(minutes=90))


def test_a_table_that_was_never_refreshed_is_due_at_once_unless_it_is_frozen() -> None:
    assert is_due("1w", None, NOON)
    assert is_due("0 0 1 1 *", None, NOON)
    assert not is_due("5s", None, NOON, tier="frozen")


@pytest.mark.parametrize("tier, factor", TIERS.items())
def test_tiers_and_backoff_stretch_a_duration(tier: str, factor: int) -> None:
    whole = timedelta(seconds=5 * factor * 4)
    assert not is_due("5s", NOON, NOON + whole - timedelta(milliseconds=1), tier, backoff=4)
    assert is_due("5s", NOON, NOON + whole, tier, backoff=4)


def test_a_stretched_schedule_says_so() -> None:
    assert due(alone("5s", "cold"), NOON, NOON, backoff=2).schedule == "5s, stretched x20"


def test_tiers_can_be_switched_off() -> None:
    found = effective_schedules({"t": Scheduled("5s", "frozen")}, {}, tiered=False)["t"]
    assert due(found, NOON, NOON + timedelta(seconds=5)).due


def test_a_duration_without_end_is_never_due_again() -> None:
    assert due(alone("9999999w", "cold"), NOON, NOON, backoff=8).next_at is None


@given(st.integers(1, 10**6), st.integers(0, 10**7), st.sampled_from(sorted(TIERS)), st.sampled_from([1, 2, 4, 8]))
def test_once_due_a_duration_stays_due(seconds: int, passed: int, tier: str, backoff: int) -> None:
    now = NOON + timedelta(seconds=passed)
    assert is_due(f"{seconds}s", NOON, now, tier, backoff) == (passed >= seconds * TIERS[tier] * backoff)


# Cron.


def test_a_cron_expression_is_due_when_one_of_its_times_has_come() -> None:
    assert not is_due("30 12 * * *", NOON, NOON + timedelta(minutes=29, seconds=59))
    assert is_due("30 12 * * *", NOON, NOON + timedelta(minutes=30))
    assert is_due("30 12 * * *", NOON, NOON + timedelta(days=9))


def test_a_time_at_which_the_table_was_refreshed_is_past() -> None:
    assert not is_due("0 12 * * *", NOON, NOON + timedelta(hours=1))


def test_nothing_stretches_a_cron_expression_but_frozen_is_frozen() -> None:
    later = NOON + timedelta(minutes=30)
    assert is_due("30 12 * * *", NOON, later, tier="cold", backoff=8)
    assert not is_due("30 12 * * *", NOON, later + timedelta(days=9), tier="frozen")


def test_a_sixth_field_in_front_is_the_second() -> None:
    assert next_fire(cron("15 30 12 * * *"), NOON) == NOON + timedelta(minutes=30, seconds=15)
    assert next_fire(cron("*/10 * * * * *"), NOON + timedelta(seconds=0.5)) == NOON + timedelta(seconds=10)


@pytest.mark.parametrize(
    "macro, expected",
    [
        ("@hourly", datetime(2026, 6, 1, 13, tzinfo=UTC)),
        ("@daily", datetime(2026, 6, 2, tzinfo=UTC)),
        ("@midnight", datetime(2026, 6, 2, tzinfo=UTC)),
        ("@weekly", datetime(2026, 6, 7, tzinfo=UTC)),
        ("@monthly", datetime(2026, 7, 1, tzinfo=UTC)),
        ("@yearly", datetime(2027, 1, 1, tzinfo=UTC)),
        ("@annually", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_macros_are_what_cron_says(macro: str, expected: datetime) -> None:
    assert next_fire(cron(macro), NOON) == expected


def test_a_time_that_never_comes_is_never_due() -> None:
    found = due(alone("0 0 30 2 *"), NOON, NOON + timedelta(days=999))
    assert (found.due, found.next_at) == (False, None)
    assert tightness(cron("0 0 30 2 *")) > timedelta(days=10_000)


def test_a_cron_expression_is_in_its_own_time_zone_or_in_that_of_the_setting() -> None:
    noon_in_berlin = datetime(2026, 6, 2, 10, tzinfo=UTC)
    assert next_fire(cron("CRON_TZ=Europe/Berlin 0 12 * * *"), NOON) == noon_in_berlin
    assert next_fire(cron("0 12 * * *", "Europe/Berlin"), NOON) == noon_in_berlin
    assert next_fire(cron("CRON_TZ=UTC 0 12 * * *", "Europe/Berlin"), NOON) == NOON + timedelta(days=1)
    assert next_fire(cron("CRON_TZ=Europe/Berlin @daily"), NOON) == datetime(2026, 6, 1, 22, tzinfo=UTC)
    assert str(cron("0 12 * * *", "Europe/Berlin")) == "0 12 * * * (Europe/Berlin)"
    assert str(cron("CRON_TZ=Europe/Berlin 0 12 * * *")) == "CRON_TZ=Europe/Berlin 0 12 * * *"


@pytest.mark.parametrize(
    "text", ["", "5 minutes", "* * * *", "* * * * * * *", "61 * * * *", "@sometimes", "CRON_TZ=UTC"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="not a schedule"):
        parse_schedule(text)


def test_an_unknown_time_zone_is_refused() -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(InvalidOption, match="no time zone"):
            parse_schedule(f"CRON_TZ={zone} 0 12 * * *", "nowhere")


@pytest.mark.parametrize(
    "text", ["5s", " 1H30M ", "1w2d", "@Hourly", "calculated", "*/5 9-17 * * MON-FRI", "0 0 L * *"]
)
def test_what_a_stream_table_takes_as_its_schedule_can_be_read(text: str) -> None:
    assert (parse_schedule(check_schedule(text)) is None) == (text == "calculated")


# Clock changes in Berlin: 29 March 2026 02:00 -> 03:00, and 25 October 2026 03:00 -> 02:00.


def fires(text: str, after: datetime, count: int) -> list[str]:
    found = []
    for _ in range(count):
        after = cast(datetime, next_fire(cron(text, "Europe/Berlin"), after))
        found.append(after.astimezone(BERLIN).strftime("%d. %H:%M %z"))
    return found


def test_a_time_that_the_clock_jumps_over_is_due_at_the_jump() -> None:
    eve = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert fires("30 2 * * *", eve, 2) == ["29. 03:00 +0200", "30. 02:30 +0200"]


def test_every_half_hour_goes_on_through_the_jump() -> None:
    eve = datetime(2026, 3, 29, 1, tzinfo=BERLIN)
    assert fires("*/30 * * * *", eve, 3) == ["29. 01:30 +0100", "29. 03:00 +0200", "29. 03:30 +0200"]


def test_a_time_that_comes_twice_is_due_once() -> None:
    eve = datetime(2026, 10, 24, 12, tzinfo=BERLIN)
    assert fires("30 2 * * *", eve, 2) == ["25. 02:30 +0200", "26. 02:30 +0100"]
    assert fires("0,30 2 * * *", eve, 3) == ["25. 02:00 +0200", "25. 02:30 +0200", "26. 02:00 +0100"]


def test_every_half_hour_is_due_in_both_hours() -> None:
    eve = datetime(2026, 10, 25, 1, 30, tzinfo=BERLIN)
    assert fires("*/30 * * * *", eve, 5) == [
        "25. 02:00 +0200",
        "25. 02:30 +0200",
        "25. 02:00 +0100",
        "25. 02:30 +0100",
        "25. 03:00 +0100",
    ]


def test_a_table_refreshed_in_the_first_of_two_hours_is_not_due_again_in_the_second() -> None:
    schedule = alone("30 2 * * *", zone="Europe/Berlin")
    refreshed = datetime(2026, 10, 25, 0, 31, tzinfo=UTC)
    assert not due(schedule, refreshed, refreshed + timedelta(hours=2)).due


moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31)).map(lambda found: found.replace(tzinfo=UTC))
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
expressions = st.sampled_from(
    ["*/7 * * * *", "30 2 * * *", "0 0 * * 0", "5 */3 1,15 * *", "*/20 30 1 * * *", "15 1-3 * * *"]
)


@given(expressions, zones, moments)
def test_the_next_time_lies_ahead_and_none_lies_between(text: str, zone: str, after: datetime) -> None:
    found = next_fire(cron(text, zone), after)
    assert found is not None
    assert found > after
    between = after + (found - after) * 0.5
    assert next_fire(cron(text, zone), between) == found
    assert next_fire(cron(text, zone), found - timedelta(microseconds=1)) == found


@given(expressions, moments)
def test_in_utc_the_next_time_matches_the_expression(text: str, after: datetime) -> None:
    found = next_fire(cron(text), after)
    assert found is not None
    assert croniter.match(text, found, second_at_beginning=True)


@given(expressions, zones, moments, st.integers(0, 10**6))
def test_due_is_a_time_between_the_last_refresh_and_now(text: str, zone: str, last: datetime, seconds: int) -> None:
    now = last + timedelta(seconds=seconds)
    fire = next_fire(cron(text, zone), last)
    assert fire is not None
    assert due(alone(text, zone=zone), last, now).due == (last < fire <= now)


# Calculated.


def calculated(
    schedules: dict[str, str], readers: dict[str, str], tiers: dict[str, str] | None = None
) -> dict[str, str]:
    tables = {name: Scheduled(text, (tiers or {}).get(name, "hot")) for name, text in schedules.items()}
    found = effective_schedules(tables, {source: names.split() for source, names in readers.items()})
    return {name: one.words for name, one in found.items()}


def test_calculated_is_the_tightest_of_what_reads_it() -> None:
    found = calculated({"a": "calculated", "slow": "1h", "fast": "30s"}, {"a": "slow fast"})
    assert found["a"] == "calculated (30s, from fast)"


def test_calculated_reaches_through_others_that_are_calculated() -> None:
    found = calculated({"a": "calculated", "b": "calculated", "c": "10s"}, {"a": "b", "b": "c"})
    assert found["a"] == "calculated (10s, from b)"
    assert found["b"] == "calculated (10s, from c)"


def test_calculated_with_nothing_below_has_the_default() -> None:
    assert calculated({"a": "calculated"}, {})["a"] == "calculated (1m, as nothing reads it)"
    assert calculated({"a": "calculated", "b": "calculated"}, {"a": "b"})["a"] == "calculated (1m, from b)"


def test_a_cron_expression_is_as_tight_as_its_closest_times() -> None:
    assert calculated({"a": "calculated", "b": "0 9,17 * * *", "c": "9h"}, {"a": "b c"})["a"].endswith("from b)")
    assert calculated({"a": "calculated", "b": "0 9,17 * * *", "c": "7h"}, {"a": "b c"})["a"].endswith("from c)")
    assert tightness(cron("0 9,17 * * *")) == timedelta(hours=8)


def test_a_cold_reader_is_a_slow_one_and_a_frozen_one_none() -> None:
    tables = {"a": "calculated", "cold": "1m", "other": "5m"}
    assert calculated(tables, {"a": "cold other"}, {"cold": "cold"})["a"] == "calculated (5m, from other)"
    assert calculated(tables, {"a": "cold"}, {"cold": "frozen"})["a"] == "calculated (1m, as nothing reads it)"


def test_a_frozen_reader_hands_nothing_up_a_chain_or_round_a_circle() -> None:
    chain = {"a": Scheduled("calculated"), "b": Scheduled("calculated", "cold"), "c": Scheduled("5s", "frozen")}
    found = effective_schedules(chain, {"a": ["b"], "b": ["c"]})
    assert (found["a"].words, found["a"].interval) == ("calculated (1m, from b)", timedelta(minutes=10))
    circle = calculated({"a": "calculated", "b": "calculated", "c": "5s"}, {"a": "b c", "b": "a"}, {"c": "frozen"})
    assert circle["a"] == circle["b"] == "calculated (1m, as nothing reads it)"


def test_a_calculated_table_for_a_cold_reader_is_as_slow_as_that() -> None:
    tables = {"a": Scheduled("calculated"), "cold": Scheduled("1m", "cold")}
    found = effective_schedules(tables, {"a": ["cold"]})["a"]
    assert found.interval == timedelta(minutes=10)
    assert due(found, NOON, NOON + timedelta(minutes=10)).due
    assert not due(found, NOON, NOON + timedelta(minutes=9)).due


def test_calculated_follows_what_it_reads_in_the_same_tick() -> None:
    follower = alone("calculated")
    assert due(follower, NOON, NOON, upstream_changed=True).due
    assert not due(follower, NOON, NOON).due
    assert not due(alone("1h"), NOON, NOON, upstream_changed=True).due
    assert not due(alone("calculated", "frozen"), NOON, NOON, upstream_changed=True).due


def test_calculated_tables_in_a_circle_have_the_default() -> None:
    found = calculated({"a": "calculated", "b": "calculated"}, {"a": "b", "b": "a"})
    assert set(found.values()) == {"calculated (1m, as nothing reads it)"}
    with_exit = calculated({"a": "calculated", "b": "calculated", "c": "7s"}, {"a": "b", "b": "a c"})
    assert with_exit["a"] == "calculated (7s, from b)"


def test_a_circle_that_nobody_reads_hands_the_default_to_what_it_reads() -> None:
    tables = {"a": "calculated", "loop": "calculated", "slow": "1h"}
    assert calculated(tables, {"a": "loop slow", "loop": "loop"})["a"] == "calculated (1m, from loop)"


@st.composite
def forests(draw: st.DrawFn) -> tuple[dict[int, Scheduled], dict[int, list[int]]]:
    count = draw(st.integers(1, 8))
    tables = {
        n: Scheduled(
            draw(st.sampled_from(["calculated", "calculated", "10s", "1m", "1h", "*/5 * * * *"])),
            draw(st.sampled_from(["hot", "hot", "warm", "cold", "frozen"])),
        )
        for n in range(count)
    }
    readers = {n: draw(st.lists(st.sampled_from(range(count)), max_size=3, unique=True)) for n in range(count)}
    return tables, readers


@given(forests())
def test_no_reader_is_tighter_than_the_calculated_table_that_it_reads(
    forest: tuple[dict[int, Scheduled], dict[int, list[int]]],
) -> None:
    tables, readers = forest
    found = effective_schedules(tables, readers)
    assert found.keys() == tables.keys()
    for source, names in readers.items():
        if tables[source].schedule == "calculated" and found[source].factor:
            for reader in names:
                if found[reader].factor and "as nothing reads it" not in found[source].words:
                    own = TIERS[tables[source].tier]
                    assert found[source].interval <= found[reader].interval * own


@given(forests())
def test_schedules_do_not_depend_on_the_order_of_the_tables(
    forest: tuple[dict[int, Scheduled], dict[int, list[int]]],
) -> None:
    tables, readers = forest
    turned = effective_schedules(dict(reversed(tables.items())), dict(reversed(readers.items())))
    assert effective_schedules(tables, readers) == turned


# Units.


def test_a_unit_is_due_with_its_fastest_or_with_its_slowest_member() -> None:
    ready = due(alone("5s"), None, NOON)
    waiting = due(alone("1h"), NOON, NOON)
    assert unit_is_due([ready, waiting], FASTEST)
    assert not unit_is_due([ready, waiting], SLOWEST)
    assert unit_is_due([ready, ready], SLOWEST)
    assert not unit_is_due([waiting, waiting], FASTEST)


def test_one_member_that_asks_for_the_slowest_decides() -> None:
    assert policy_of([None, FASTEST, SLOWEST]) == SLOWEST
    assert policy_of([None, FASTEST]) == FASTEST


def test_a_schedule_is_read_once_however_often_it_is_asked() -> None:
    assert parse_schedule("5s") is parse_schedule("5s")
    assert parse_schedule("5s") == Every(timedelta(seconds=5))
