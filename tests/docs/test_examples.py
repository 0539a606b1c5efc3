"""Every example of the README and of the documentation runs and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.docs.pages import Reader
from trickle.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])


# A page is a long story, and the first one waits for Spark to start.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    found = blocks(page)
    if not found:
        return
    monkeypatch.chdir(tmp_path)
    for name in ("TRICKLE_WAREHOUSE", "TRICKLE_CATALOG", "TRICKLE_SPARK", "NO_COLOR", "COLUMNS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    # The pages connect as a reader would; the session of the test run is the one they get.
    engine: Engine = request.getfixturevalue("engine")
    engine.sql("SELECT 1")
    reader = Reader()
    try:
        for block in found:
            reader.run(block)
    finally:
        reader.close()
