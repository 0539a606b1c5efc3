"""An ingest in a process of its own, killed at a step of its unit (``FOLDER STEP MEMBER``)."""

from __future__ import annotations

import sys

from tests.killing import lent_session
from trickle.api import connect
from trickle.apply.steps import Step
from trickle.testing.faults import kill_at


def main() -> None:
    folder, step, member = sys.argv[1:]
    t = connect(folder, spark=lent_session(), create=False)
    kill_at(Step(step), int(member))
    t.ingest()


if __name__ == "__main__":
    main()
