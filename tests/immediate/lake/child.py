"""Runs a statement in a process of its own, which is killed at a step: child.py WAREHOUSE STEP MEMBER STATEMENT"""

from __future__ import annotations

import sys
from pathlib import Path

import trickle
from tests.killing import lent_session
from trickle.apply.steps import Step
from trickle.testing import kill_at


def main() -> None:
    folder, step, member, statement = sys.argv[1:]
    with trickle.connect(Path(folder), spark=lent_session()) as t:
        kill_at(Step(step), int(member))
        t.sql(statement)
    sys.exit("the step was not reached")


if __name__ == "__main__":
    main()
