"""Runs the command: in this process where that is enough, in one of its own where it matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trickle.cli.main import run

COMMAND = [sys.executable, "-m", "trickle.cli.main"]
PATIENCE = 100
"""Seconds that a process of its own may take on a busy machine."""


@dataclass(frozen=True)
class Ran:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The one JSON error on stderr."""
        found: dict[str, Any] = json.loads(self.err)["error"]
        return found


@dataclass(frozen=True)
class Cli:
    """The command on one warehouse, inside the test's own process: Spark is the one that all tests share."""

    warehouse: Path
    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Ran:
        self.captured.readouterr()
        code = run(["-w", str(self.warehouse), *arguments])
        told = self.captured.readouterr()
        return Ran(code, told.out, told.err)

    def document(self, *arguments: str) -> Any:
        """What the command prints with ``--json``, which has to go well."""
        ran = self(*arguments, "--json")
        assert ran.code == 0, ran.err
        return ran.document


def spawn(*arguments: str, text: str | None = None, **environment: str) -> Ran:
    """The command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
