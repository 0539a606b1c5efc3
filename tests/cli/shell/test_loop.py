from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.cli.runner import COMMAND, PATIENCE, Cli
from tests.scenarios.fixtures import t as t
from trickle.api import Trickle
from trickle.cli.session import Session
from trickle.cli.shell.loop import is_complete, talk

Told = pytest.CaptureFixture[str]
LEAVE = "\\q\r"


@contextmanager
def typing(text: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal on which a text is typed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
        keyboard.send_text(text)
        yield


@pytest.mark.parametrize(
    "text, complete",
    [
        ("", True),
        ("  \n", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT ';\n", True),
        ("/* ; */", True),
        ("\\d orders", True),
    ],
)
def test_when_enter_sends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_session(t: Trickle, tmp_path: Path, capsys: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        "CREATE TABLE a (\rn INT);\r",
        "INSERT INTO a VALUES (7); SELECT n + 1 AS m\rFROM a;\r",
        "SELECT * FROM b;\r",
        "\\d a\r",
        "\\dt\r",
        "\\nothing\r",
        "\\?\r",
        "\x03",
        LEAVE,
    ]
    with typing("".join(said), tmp_path, monkeypatch):
        talk(Session(), t, 100)
    told = capsys.readouterr()
    out = [line.strip() for line in told.out.splitlines()]
    assert "table a created" in out
    assert "8" in out
    assert any(line.startswith("# kind") for line in out)
    assert any("leave (also Ctrl-D)" in line for line in out)
    assert "error: no table is called b [UNKNOWN_TABLE]" in told.err
    assert "error: no helper \\nothing [INVALID_OPTION]" in told.err
    assert "CREATE TABLE a (" in (tmp_path / "trickle" / "history").read_text()


def test_the_end_of_input_ends_the_session(
    t: Trickle, tmp_path: Path, capsys: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    with typing("SHOW TABLES;\r\x04", tmp_path, monkeypatch):
        talk(Session(as_json=True), t, 100)
    assert capsys.readouterr().out == "[]\n"


def test_a_session_on_a_terminal_remembers_the_last_one(cli: Cli, tmp_path: Path) -> None:
    """Up and Enter in the second session repeat what was typed in the first."""
    first = on_terminal([*COMMAND, "-w", str(cli.warehouse), "sql"], "SHOW TABLES;\r" + LEAVE, tmp_path)
    assert "schema" in first
    again = on_terminal([*COMMAND, "-w", str(cli.warehouse), "sql"], "\x1b[A\x1b[A\r" + LEAVE, tmp_path)
    assert "schema" in again


def on_terminal(command: list[str], keys: str, state: Path) -> str:
    """What a program prints on a pseudo terminal while keys are typed. It has to end well."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        os.write(ours, keys.encode())
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass  # Linux says so when the other side is closed.
        os.close(ours)
        assert process.wait(PATIENCE) == 0, seen.decode(errors="replace")
    return seen.decode(errors="replace")
