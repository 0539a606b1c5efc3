"""Refreshes a unit in a process of its own, which is killed at a step: child.py WAREHOUSE STEP MEMBER NAME..."""

from __future__ import annotations

import sys
from pathlib import Path

import trickle
from tests.apply.shop import refresh_unit
from tests.killing import lent_session
from trickle.apply.steps import Step
from trickle.testing import kill_at


def main() -> None:
    folder, step, member, *names = sys.argv[1:]
    with trickle.connect(Path(folder), spark=lent_session()) as t:
        kill_at(Step(step), int(member))
        refresh_unit(t, tuple(names))
    sys.exit("the step was not reached")


if __name__ == "__main__":
    main()
