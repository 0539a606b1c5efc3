"""A warehouse with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trickle
from tests.scenarios.gates.ticking import Ticking
from trickle.engine import Engine
from trickle.testing import FakeClock


@pytest.fixture
def day(engine: Engine, tmp_path: Path) -> Iterator[Ticking]:
    """An empty warehouse at the beginning of a day."""
    clock = FakeClock()
    with trickle.connect(tmp_path / "wh", spark=engine.spark, clock=clock) as opened:
        yield Ticking(opened, clock)
