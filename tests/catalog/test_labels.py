from __future__ import annotations

import pytest

from trickle.catalog.labels import check_label, taken_label, unknown_label
from trickle.errors import InvalidName


def test_a_label_loses_the_space_around_it_and_keeps_the_rest() -> None:
    assert check_label("  Nightly load: 🦆 ", "gate") == "Nightly load: 🦆"


@pytest.mark.parametrize("name", ["", " \t", "a\x00b", "half \ud800", "x" * 129])
def test_what_cannot_be_a_label_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="not a name for a gate"):
        check_label(name, "gate")


def test_errors_name_what_was_meant() -> None:
    assert unknown_label("nigtly", "gate", ["Daily", "Nightly"]).hint == "did you mean 'Nightly'?"
    assert unknown_label("zzz", "gate", ["Daily"]).hint is None
    assert "there is a gate 'Daily' already" in str(taken_label("Daily", "gate"))
