from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = [sys.executable, str(Path(__file__).resolve().parents[2] / "demo" / "shop.py")]


@pytest.mark.timeout(300)
def test_the_demo_runs_and_its_last_line_can_be_typed(tmp_path: Path) -> None:
    demo = play(tmp_path)
    assert (demo.returncode, demo.stderr) == (0, ""), demo.stdout
    lines = demo.stdout.splitlines()
    refreshes = [line for line in lines if line.endswith("✓")]
    assert len(refreshes) == 18
    assert all("SKIP" in line and "fuse" in line for line in refreshes[-4:-1])
    assert "REINITIALIZE" in refreshes[-1]
    assert any("alert: fuse_blown" in line for line in lines)
    assert any("of 427 rows 427 would go" in line for line in lines)
    assert any("all is well" in line for line in lines)

    looked = subprocess.run(shlex.split(lines[-1]), capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = looked.stdout.splitlines()
    assert len(rows) == 3
    assert all("'segment': " in row and "'revenue': Decimal(" in row for row in rows)


def test_the_demo_fails_openly(tmp_path: Path) -> None:
    demo = play(tmp_path, PATH="", JAVA_HOME="")
    assert demo.returncode == 1
    assert demo.stderr.startswith("error: Spark needs Java 17 or newer")
    assert "Traceback" not in demo.stderr


def play(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the demo with its warehouse below a folder."""
    return subprocess.run(
        DEMO,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "TMPDIR": str(folder), **environment},
    )
