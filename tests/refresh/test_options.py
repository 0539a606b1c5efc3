"""Options of stream tables: known names, checked values."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trickle.catalog.records import RefreshMode
from trickle.errors import InvalidOption
from trickle.refresh.options import OPTIONS, check_mode, check_options
from trickle.refresh.schedule import check_schedule
from trickle.settings import parse_duration


@pytest.mark.parametrize(
    "text, seconds",
    [("5s", 5), ("1m30s", 90), (" 2H ", 7200), ("1w2d3h4m5s", 788645), ("10m", 600), ("0s", 0), ("90m", 5400)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", " ", "5", "s", "5 s", "1s1h", "-5s", "1.5s", "fast", "5s;"])
def test_texts_that_are_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    "given, kept",
    [
        ("5S", "5s"),
        (" 1h30m ", "1h30m"),
        ("CALCULATED", "calculated"),
        ("@Hourly", "@hourly"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("0 0 12 * * 1-5", "0 0 12 * * 1-5"),
    ],
)
def test_schedules(given: str, kept: str) -> None:
    assert check_schedule(given) == kept


@pytest.mark.parametrize(
    "given", ["", None, 5, "0s", "soon", "61 * * * *", "* * * *", "@sometimes", "99999999999w", "9" * 5000 + "s"]
)
def test_texts_that_are_no_schedule(given: object) -> None:
    with pytest.raises(InvalidOption):
        check_schedule(given)


def test_modes() -> None:
    assert check_mode("full") is RefreshMode.FULL
    assert check_mode(RefreshMode.AUTO) is RefreshMode.AUTO
    assert check_mode("Immediate") is RefreshMode.IMMEDIATE
    with pytest.raises(InvalidOption) as caught:
        check_mode("fulll")
    assert "FULL" in (caught.value.hint or "")


RIGHT = {
    "append_only": True,
    "auto_threshold": 0.5,
    "cdc_mode": "auto",
    "description": "all of it",
    "diamond_consistency": "atomic",
    "diamond_schedule_policy": "slowest",
    "freshness_deadline": "30s",
    "fuse": "adaptive",
    "fuse_baseline": "ewma",
    "fuse_ceiling": 1000,
    "fuse_max_ratio": 0.25,
    "fuse_sensitivity": 3.0,
    "fuse_window_size": 20,
    "max_delta_fraction": 0.1,
    "partition_by": ["a", "b"],
    "tier": "hot",
}


def test_all_options_together_are_kept_as_given() -> None:
    assert set(RIGHT) == set(OPTIONS)
    assert check_options(RIGHT) == RIGHT


@pytest.mark.parametrize("name", sorted(RIGHT))
@pytest.mark.parametrize("value", [object(), -1, 10**20, float("nan"), b"x"])
def test_values_of_the_wrong_type_or_range_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=name):
        check_options({name: value})


def test_texts_are_normalised() -> None:
    assert check_options({"TIER": "Hot", "partition_by": " a , b,", "freshness_deadline": "1H"}) == {
        "tier": "hot",
        "partition_by": ["a", "b"],
        "freshness_deadline": "1h",
    }


def test_a_true_value_is_no_number() -> None:
    with pytest.raises(InvalidOption, match="fuse_ceiling"):
        check_options({"fuse_ceiling": True})


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(InvalidOption, match="no option 'teir'") as caught:
        check_options({"teir": "hot"})
    assert caught.value.hint == "did you mean 'tier'?"
    with pytest.raises(InvalidOption, match="no option 'shedule'") as caught:
        check_options({"shedule": "5s"})
    assert caught.value.hint == "did you mean 'schedule'?"


def test_none_leaves_an_option_out() -> None:
    assert check_options({"tier": None}) == {}


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidOption, match="diamond_schedule_policy"):
        check_options({"diamond_consistency": "none", "diamond_schedule_policy": "fastest"})
