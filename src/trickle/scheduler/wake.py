"""What wakes the scheduler: commits, seen in the folders of table logs, and whatever else has something to say.

A commit of any writer, of this process or of another, is a new file in the log's folder; the file system tells of it
within milliseconds and no Spark job is needed. Where there is nothing to watch (object stores, a file system without
notices) the scheduler looks by itself from time to time.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections.abc import Iterable
from pathlib import Path

from watchfiles import Change, watch

from trickle.lake.location import Location
from trickle.lake.log import LOG_FOLDER

CAPTURED, COMMIT, ENDED, STOP = "captured", "commit", "ended", "stop"
DEBOUNCE_MS = 10

_COMMIT_NAME = re.compile(r"\d{20}\.json\Z")
_LOOK_MS = 10
"""How often the watcher looks at what the system has told it: a third of a percent of a core."""
log = logging.getLogger("trickle.scheduler")


class Wake:
    """A bell that any thread may ring, and a signal handler too."""

    def __init__(self) -> None:
        self._rung: queue.SimpleQueue[str] = queue.SimpleQueue()

    def ring(self, why: str) -> None:
        """Wake whoever waits."""
        self._rung.put(why)

    def wait(self, seconds: float) -> set[str]:
        """Wait for the bell, for so long at most; everything that it was rung for."""
        reasons: set[str] = set()
        try:
            reasons.add(self._rung.get(timeout=max(0.0, seconds)))
            while True:
                reasons.add(self._rung.get_nowait())
        except queue.Empty:
            return reasons


class Watcher:
    """Rings the bell when a commit appears in one of the tables that it watches."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._watched: frozenset[str] = frozenset()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.has_begun = False

    def watch(self, places: Iterable[Location]) -> None:
        """Watch these tables from now on; nothing happens when they are the same as before."""
        folders = [Path(place.uri, LOG_FOLDER) for place in places if place.is_local]
        wanted = frozenset(str(folder) for folder in folders if folder.is_dir())
        self.has_begun = True
        if wanted == self._watched:
            return
        self.close()
        self._watched = wanted
        if wanted:
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._look, args=(sorted(wanted), self._stop), name="trickle-watcher", daemon=True
            )
            self._thread.start()
            # What was committed before it began to watch is found by looking once more.
            self._wake.ring(COMMIT)

    def close(self) -> None:
        """Watch nothing any more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._watched = frozenset()

    def _look(self, folders: list[str], stop: threading.Event) -> None:
        try:
            for _ in watch(
                *folders,
                watch_filter=_is_commit,
                debounce=DEBOUNCE_MS,
                step=_LOOK_MS,
                stop_event=stop,
                rust_timeout=0,
                recursive=False,
                raise_interrupt=False,
            ):
                self._wake.ring(COMMIT)
        except (OSError, RuntimeError) as error:
            # A folder that is gone, or more folders than the system watches: looking from time to time remains.
            log.warning("event=not_watching folders=%s error=%r", len(folders), str(error))


def _is_commit(_: Change, path: str) -> bool:
    return _COMMIT_NAME.search(path) is not None
