from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(300)
def test_the_demo_runs_and_its_last_line_can_be_typed(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "demo" / "shop.py")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (demo.returncode, demo.stderr) == (0, ""), demo.stdout
    lines = demo.stdout.splitlines()
    refreshes = [line for line in lines if line.endswith("✓")]
    assert len(refreshes) == 18
    assert all("NO_DATA" in line and "0 jobs" in line for line in refreshes[-3:])

    command = shlex.split(lines[-1])
    looked = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = looked.stdout.splitlines()
    assert len(rows) == 3
    assert all("'segment': " in row and "'revenue': Decimal(" in row for row in rows)
