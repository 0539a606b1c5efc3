"""A capture process: it ingests over and over until it is killed (``FOLDER``), and says so after every round."""

from __future__ import annotations

import sys
import time

from trickle.api import connect
from trickle.errors import TransientError


def main() -> None:
    t = connect(sys.argv[1], spark="local[1]", create=False)
    while True:
        try:
            told = str(sum(result.rows_inserted + result.rows_deleted for result in t.ingest()))
        except TransientError as error:
            # The test's own refreshes ingest too, and one of both comes first.
            told = f"again: {error.message}"
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
        time.sleep(0.02)


if __name__ == "__main__":
    main()
