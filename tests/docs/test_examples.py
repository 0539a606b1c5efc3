"""Every example of the README and of the documentation runs and prints what the page shows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.docs.pages import Reader
from tests.postgres import Postgres
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
    with ExitStack() as stack:
        stack.callback(reader.close)
        if page.name in ("immediate.md", "postgres.md", "publishing.md"):
            # The page says what the name stands for.
            server: Postgres = request.getfixturevalue("postgres")
            reader.names["dsn"] = stack.enter_context(server.database())
        for block in found:
            reader.run(block)
