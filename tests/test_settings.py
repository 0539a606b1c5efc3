"""Settings: typed, with ranges, and refused by name when wrong."""

from __future__ import annotations

import pytest

from trickle.errors import InvalidOption
from trickle.settings import Settings, combine, describe, from_environment, from_toml, parse_value


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


def test_every_default_is_within_its_own_range() -> None:
    for name, _, default, text in describe():
        assert parse_value(name, default) == getattr(Settings(), name)
        assert text
