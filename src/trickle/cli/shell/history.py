"""What was typed in earlier sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


def history_file(environment: Mapping[str, str]) -> Path:
    """Where the history lies, by the XDG rules."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return folder / "trickle" / "history"


def open_history(file: Path) -> History:
    """The history in a file that only its owner reads; one that is soon forgotten where it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
