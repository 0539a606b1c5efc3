"""Random graphs through ticks: two short seeds here, fifty long ones in ``make stress``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.gates.stress import run
from trickle.engine import Engine

FIRST = int(os.environ.get("TRICKLE_STRESS_FIRST", "0"))
SEEDS = int(os.environ.get("TRICKLE_STRESS_SEEDS", "2"))
TICKS = int(os.environ.get("TRICKLE_STRESS_TICKS", "30"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_a_random_graph_keeps_every_promise(engine: Engine, tmp_path: Path, seed: int) -> None:
    counts = run(engine, tmp_path / "wh", seed, TICKS)
    assert counts["compared"], "nothing was ever compared"
    print(", ".join(f"{what} {number}" for what, number in sorted(counts.items())))  # noqa: T201 - shown with -rP
