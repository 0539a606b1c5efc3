"""The changelog begins with the version that is here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import trickle

ROOT = Path(__file__).resolve().parents[2]


def test_the_newest_entry_is_this_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    entries = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert entries[0] == declared == trickle.__version__
