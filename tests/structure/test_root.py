"""The root of the project holds what it must and nothing else."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ALLOWED = {
    ".ci",
    ".git",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "bench",
    "demo",
    "docs",
    "pyproject.toml",
    "requirements",
    "scripts",
    "src",
    "tests",
}
TARGETS = (
    "help",
    "demo",
    "test",
    "check",
    "bench",
    "tpch",
    "fuzz",
    "mutate",
    "soak",
    "stress",
    "docs",
    "build",
    "lock",
    "clean",
)


def test_no_scratch_files_lie_in_the_root() -> None:
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line]
    entries = [p.name for p in ROOT.iterdir() if not any(fnmatch(p.name, pattern) for pattern in ignored)]
    assert sorted(set(entries) - ALLOWED) == []


def test_every_make_target_is_described() -> None:
    described = re.findall(r"^([a-z]+):.*## \S", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(TARGETS)


def test_the_check_of_every_change_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert os.access(ROOT / "scripts" / "make_venv", os.X_OK)


def test_the_lock_file_pins_and_hashes_and_names_no_place() -> None:
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    pins = re.findall(r"^([a-z][\w.-]*)==", lock, re.MULTILINE)
    assert {"pyspark", "deltalake", "hatchling", "pytest"} <= set(pins)
    assert len(re.findall(r"^\S.* \\$", lock, re.MULTILINE)) == len(pins)
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock
