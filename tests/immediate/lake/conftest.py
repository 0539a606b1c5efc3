"""A warehouse, and what all these stories ask after every statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trickle
from trickle.api import Trickle
from trickle.engine import Engine


@pytest.fixture
def t(engine: Engine, tmp_path: Path) -> Iterator[Trickle]:
    with trickle.connect(tmp_path / "wh", spark=engine.spark) as opened:
        yield opened
