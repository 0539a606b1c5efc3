"""Modules stay small enough to be read at once."""

from __future__ import annotations

import ast
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(p for p in (ROOT / "src").rglob("*.py") if p.read_text(encoding="utf-8").strip())
LINES = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES}

# Put together from halves, so that this file does not hold them.
MARKS = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error"]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_is_over_600_lines() -> None:
    assert [short(p) for p, lines in LINES.items() if lines > 600] == []


def test_the_median_module_is_under_200_lines() -> None:
    assert statistics.median(LINES.values()) < 200


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_every_module_says_at_its_head_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


def test_nothing_is_left_for_later() -> None:
    sources = [p for folder in ("src", "tests", "scripts", "bench", "demo") for p in (ROOT / folder).rglob("*.py")]
    found = [(short(p), mark) for p in sources for mark in MARKS if re.search(rf"\b{mark}\b", p.read_text())]
    assert found == []
