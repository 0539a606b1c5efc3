"""A scheduler in a process of its own, until somebody ends it: child.py WAREHOUSE"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import trickle
from trickle.scheduler.loop import run


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(process)d %(message)s")
    logging.getLogger("trickle").setLevel(logging.INFO)
    with trickle.connect(Path(sys.argv[1]), spark="local[1]", create=False) as t:
        run(t.warehouse)


if __name__ == "__main__":
    main()
