from __future__ import annotations

import pytest

from tests.cli.runner import Cli
from trickle import api
from trickle.cli import names
from trickle.cli.main import run


@pytest.fixture
def tab(cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Press the Tab key at the end of a line."""

    def press(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_TRICKLE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit):
            run([])
        told = capsys.readouterr()
        assert told.err == ""
        return told.out.split()

    return press


def test_the_name_of_the_catalog_file_is_the_same_everywhere() -> None:
    assert names.CATALOG_FILE == api.CATALOG_FILE


def test_commands_and_table_names_are_completed(shop: Cli, tab) -> None:
    assert tab("trickle hist") == ["history"]
    assert tab(f"trickle -w {shop.warehouse} table p") == ["paid", "per_customer"]
    assert tab(f"trickle describe -w {shop.warehouse} o") == ["orders"]
    assert tab(f"trickle -w {shop.warehouse} refresh ") == ["grand", "per_customer"]
    assert tab("trickle fuse ins") == ["inspect"]
    assert tab(f"trickle -w {shop.warehouse} fuse inspect g") == ["grand"]
    assert tab(f"trickle source gate -w {shop.warehouse} o") == ["orders"]


def test_nothing_is_offered_and_nothing_is_said_where_there_is_no_warehouse(bare: Cli, tab) -> None:
    assert tab(f"trickle -w {bare.warehouse}/none table p") == []


def test_completion_can_be_shown_for_the_shell(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    with pytest.raises(SystemExit, match="0"):
        run(["--show-completion"])
    assert "_TRICKLE_COMPLETE=complete_bash" in capsys.readouterr().out
