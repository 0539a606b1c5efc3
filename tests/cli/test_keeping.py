from __future__ import annotations

import logging
import os
import pty
import signal
import subprocess
import threading
from contextlib import suppress

import pytest

from tests.cli.runner import COMMAND, PATIENCE, Cli
from trickle.cli import keeping
from trickle.scheduler.loop import Progress


def test_what_the_scheduler_does_in_words() -> None:
    assert keeping.line(Progress(leads=False)) == "standing by: another scheduler leads"
    assert keeping.line(Progress(True, 2)) == "2 stream tables: nothing to do"
    assert keeping.line(Progress(True, 3, ("a", "b"))) == "3 stream tables: refreshing a, b"


def test_the_log_is_on_stderr_for_the_time_of_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    ours = logging.getLogger("trickle")
    before = (ours.level, ours.propagate, list(ours.handlers))
    with keeping._logging(logging.INFO):
        logging.getLogger("trickle.scheduler").info("event=leading token=%s", 7)
        logging.getLogger("trickle.scheduler").debug("not this")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.endswith("level=INFO logger=trickle.scheduler event=leading token=7\n")
    assert told.err.count("\n") == 1
    assert (ours.level, ours.propagate, list(ours.handlers)) == before


def test_a_terminal_shows_what_is_being_done(cli: Cli) -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "-w", str(cli.warehouse), "run"], stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        seen = b""
        with suppress(OSError):  # Linux tells in this way that the other end is closed.
            while b"nothing to do" not in seen:
                seen += os.read(terminal, 1024)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):
            while chunk := os.read(terminal, 1024):
                seen += chunk
        process.wait(PATIENCE)
        patience.cancel()
    os.close(terminal)
    words = b" ".join(seen.split())  # A terminal wraps lines.
    assert b"0 stream tables: nothing to do" in words
    assert b"event=leading" in words
    assert b"event=stopped why=SIGINT" in words
    assert process.returncode == 0
