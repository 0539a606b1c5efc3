from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory, InMemoryHistory

from trickle.cli.shell.history import history_file, open_history


def test_the_history_lies_where_state_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_file({}) == tmp_path / ".local/state/trickle/history"
    assert history_file({"XDG_STATE_HOME": "/var/state"}) == Path("/var/state/trickle/history")
    assert history_file({"XDG_STATE_HOME": "not/absolute"}) == tmp_path / ".local/state/trickle/history"


def test_the_history_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "history"
    history = open_history(file)
    assert isinstance(history, FileHistory)
    history.append_string("SELECT 1;\nSELECT 2;")
    assert list(open_history(file).load_history_strings()) == ["SELECT 1;\nSELECT 2;"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
