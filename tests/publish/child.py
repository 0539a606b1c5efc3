"""Publications brought to the present in a process of its own, killed at a step (``FOLDER STEP [DSN]``).

With an address the stream table ``amounts`` is published there for the first time.
"""

from __future__ import annotations

import os
import signal
import sys

from tests.killing import lent_session
from trickle.api import connect
from trickle.publish.following import follow
from trickle.publish.steps import Step, observe


def main() -> None:
    folder, step, *address = sys.argv[1:]
    t = connect(folder, spark=lent_session(), create=False)

    def watch(reached: Step) -> None:
        if reached == Step(step):
            os.kill(os.getpid(), signal.SIGKILL)

    observe(watch)
    if address:
        t.publish("amounts", address[0])
    else:
        follow(t.warehouse)


if __name__ == "__main__":
    main()
