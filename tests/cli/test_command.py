from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import Cli
from trickle.cli.command import paths
from trickle.cli.main import COMMANDS, run

Told = pytest.CaptureFixture[str]


def test_global_options_stand_before_or_after_the_command(cli: Cli, capsys: Told) -> None:
    place = str(cli.warehouse)
    for line in (["--json", "-w", place, "tables"], ["tables", "--json", "--warehouse", place]):
        assert run(line) == 0
        assert capsys.readouterr().out == "[]\n"


def test_what_stands_after_the_command_wins(cli: Cli, tmp_path: Path) -> None:
    ran = cli("tables", "-w", str(tmp_path / "elsewhere"))
    assert ran.code == 5
    assert f"there is no warehouse at {tmp_path / 'elsewhere'}" in ran.err


def test_the_environment_names_the_warehouse(cli: Cli, capsys: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRICKLE_WAREHOUSE", str(cli.warehouse))
    assert run(["tables", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_the_environment_names_the_catalog(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRICKLE_CATALOG", "mysql://nobody@nowhere/x")
    assert cli("tables").code != 0


def test_without_a_command_the_help_is_shown(capsys: Told) -> None:
    assert run([]) == 0
    out = capsys.readouterr().out
    assert all(path.split()[0] in out for path in paths(COMMANDS))


@pytest.mark.parametrize("command", paths(COMMANDS))
def test_every_command_has_help_that_names_json(command: str, capsys: Told) -> None:
    assert run([*command.split(), "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_a_word_with_commands_below_it_shows_them(capsys: Told) -> None:
    assert run(["fuse"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("status", "inspect", "reset"))


def test_global_options_reach_commands_below_a_word(cli: Cli, capsys: Told) -> None:
    place = str(cli.warehouse)
    for line in (["--json", "-w", place, "fuse", "status"], ["fuse", "status", "--json", "-w", place]):
        assert run(line) == 0
        assert capsys.readouterr().out == "[]\n"


def test_a_typing_error_is_met_with_the_nearest_command(capsys: Told) -> None:
    assert run(["statsu"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no such command 'statsu' [USAGE]",
        "hint: did you mean 'status'?",
    ]


@pytest.mark.parametrize("line", [["table"], ["status", "--bogus"], ["table", "x", "--limit", "many"]])
def test_a_wrong_command_line_names_the_help(line: list[str], capsys: Told) -> None:
    assert run(line) == 2
    told = capsys.readouterr().err
    assert "[USAGE]" in told
    assert told.splitlines()[-1] == f"hint: trickle {line[0]} --help"
