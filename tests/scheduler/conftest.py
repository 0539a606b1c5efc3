"""What the stories of the scheduler share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import trickle
from trickle.api import Trickle
from trickle.apply.steps import Step, observe
from trickle.engine import Engine
from trickle.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def later(clock: FakeClock) -> Callable[[float], None]:
    """Let so many seconds pass."""
    return lambda seconds: clock.advance(timedelta(seconds=seconds))


@pytest.fixture
def t(engine: Engine, tmp_path: Path, clock: FakeClock) -> Iterator[Trickle]:
    """An empty warehouse with a clock that stands still."""
    with trickle.connect(tmp_path / "wh", spark=engine.spark, clock=clock) as opened:
        yield opened


@contextmanager
def at_step(step: Step, act: Callable[[], None]) -> Iterator[None]:
    """Inside the block, do something whenever a refresh reaches a step: in the thread of that refresh."""

    def watch(reached: Step, _: int) -> None:
        if reached is step:
            act()

    observe(watch)
    try:
        yield
    finally:
        observe(None)
