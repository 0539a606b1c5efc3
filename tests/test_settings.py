"""Settings: typed, with ranges, and refused by name when wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, floats, integers, none, sampled_from, text, timedeltas

from trickle.errors import InvalidOption
from trickle.settings import (
    Settings,
    allowed_values,
    combine,
    describe,
    from_environment,
    from_toml,
    parse_duration,
    parse_value,
    show_duration,
    spell,
)


def test_later_values_win_and_the_others_stay() -> None:
    base = combine(Settings(), from_toml("[trickle]\nmax_consecutive_errors = 5\ncommit_attempts = 2"))
    final = combine(base, from_environment({"TRICKLE_COMMIT_ATTEMPTS": "9", "TRICKLE_OTHER": "x", "HOME": "/"}))
    assert final.max_consecutive_errors == 5
    assert final.commit_attempts == 9
    assert final.vacuum_retention_hours == Settings().vacuum_retention_hours


@pytest.mark.parametrize(
    "text, value", [("on", True), ("TRUE", True), (1, True), ("off", False), ("No", False), (False, False)]
)
def test_a_switch_is_read_in_the_usual_spellings(text: object, value: bool) -> None:
    assert parse_value("block_source_ddl", text) is value


@pytest.mark.parametrize(
    "name, value, complaint",
    [
        ("max_consecutive_eror", 3, "did you mean 'max_consecutive_errors'"),
        ("zzz", 3, "settings: block_source_ddl, "),
        ("block_source_ddl", "maybe", "is on or off, not 'maybe'"),
        ("max_consecutive_errors", "three", "is a whole number, not 'three'"),
        ("max_consecutive_errors", 0, "0 is not within 1 to 1000000"),
        ("commit_attempts", 1.5, "is a whole number, not 1.5"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name: str, value: object, complaint: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse_value(name, value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("text", ["[trickle", "trickle = 3"])
def test_a_wrong_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"trickle\.toml"):
        from_toml(text)


def test_a_file_without_our_table_says_nothing() -> None:
    assert from_toml("[other]\nx = 1") == {}


def test_every_default_is_within_its_own_range_and_written_as_a_file_has_it() -> None:
    for name, kind, default, meaning in describe():
        written = from_toml(f"[trickle]\n{name} = {default}")[name]
        assert parse_value(name, written) == parse_value(name, str(written)) == getattr(Settings(), name)
        assert kind in ("bool", "int", "float", "text", "duration")
        assert meaning
        assert allowed_values(name)


def test_texts_are_kept_as_written_and_words_are_not() -> None:
    address = "https://hooks.example.org/T0/Secret?x=Y"
    assert parse_value("alert_webhook", f" {address} ") == address
    assert parse_value("alert_webhook", "") == ""
    assert parse_value("schedule_timezone", "Europe/Berlin") == "Europe/Berlin"
    assert parse_value("fuse_default", "Adaptive") == "adaptive"
    assert parse_value("default_schedule", "1H30M") == "1h30m"
    assert parse_value("watermark_stuck_after", "2h") == timedelta(hours=2)


@pytest.mark.parametrize(
    "name, value, complaint",
    [
        ("fuse_default", "adaptiv", "did you mean 'adaptive'?"),
        ("fuse_default", "always", "it is one of none, fixed, adaptive"),
        ("schedule_timezone", "Europe/Berlim", "did you mean 'Europe/Berlin'?"),
        ("schedule_timezone", "../etc/passwd", "is a time zone, not"),
        ("schedule_timezone", "", "is a time zone, not ''"),
        ("schedule_timezone", "a\x00b", "is a time zone"),
        ("default_schedule", "0s", "at least one second"),
        ("default_schedule", "* * * * *", "at least one second"),
        ("watermark_stuck_after", "soon", "is a duration, not 'soon'"),
        ("watermark_stuck_after", timedelta(seconds=-1), "is a duration"),
        ("alert_webhook", "ftp://example.org", "not a web address"),
        ("alert_webhook", "example.org/hook", "with http:// or https://"),
        ("alert_webhook", "http://", "not a web address"),
        ("alert_webhook", "http://[::1", "not a web address"),
        ("alert_webhook", "http://example.org/a b", "not a web address"),
    ],
)
def test_a_wrong_text_is_refused_with_what_to_write(name: str, value: object, complaint: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse_value(name, value)
    assert complaint in str(caught.value)
    assert caught.value.hint


def test_a_refused_web_address_is_not_repeated() -> None:
    with pytest.raises(InvalidOption) as caught:
        parse_value("alert_webhook", "hooks.example.org/token")
    assert "token" not in str(caught.value)


@given(timedeltas(min_value=timedelta(), max_value=timedelta(days=10_000)))
def test_a_shown_duration_is_read_again(duration: timedelta) -> None:
    assert parse_duration(show_duration(duration)) == timedelta(seconds=int(duration.total_seconds()))


@given(text())
def test_any_text_is_a_duration_or_none(written: str) -> None:
    found = parse_duration(written)
    assert found is None or found >= timedelta()


@given(sampled_from([name for name, *_ in describe()]), text() | integers() | floats() | booleans() | none())
def test_any_value_is_refused_or_can_be_written_down(name: str, value: object) -> None:
    try:
        taken = parse_value(name, value)
    except InvalidOption:
        return
    assert parse_value(name, from_toml(f"[trickle]\n{name} = {spell(taken)}")[name]) == taken
