"""The state of a log at a version, replayed from a checkpoint or from a state that was replayed before.

Refreshes ask for the same few versions again and again, and for the next one. States are therefore remembered. A
commit never changes once it is written, so a remembered state is right as long as its own commit still reads the
same; a table that was made anew in the same place has other commits.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trickle.errors import HistoryLost
from trickle.lake import checkpoint, log
from trickle.lake.actions import data_file, identity
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location

_MOST_STEPS = 100
"""Beyond so many commits a checkpoint is likely to be nearer."""
_MOST_STATES = 2_000
"""States that are remembered: of some hundred tables, with their inner tables, the last versions of each."""
_MOST_FILES = 200_000


@dataclass(frozen=True)
class State:
    """What a log says at one version."""

    protocol: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    files: Mapping[tuple[str, str | None], DataFile] = field(default_factory=dict)

    def after(self, commits: Iterable[Iterable[Mapping[str, Any]]]) -> State:
        """The state after further commits."""
        protocol, metadata, files = self.protocol, self.metadata, dict(self.files)
        for actions in commits:
            adds = []
            for action in actions:
                if remove := action.get("remove"):
                    files.pop(identity(remove), None)
                elif add := action.get("add"):
                    adds.append(add)
                protocol = action.get("protocol") or protocol
                metadata = action.get("metaData") or metadata
            # The order inside a commit means nothing: a new deletion vector adds the path that it also removes.
            for add in adds:
                files[identity(add)] = data_file(add)
        return State(protocol, metadata, files)


class _Memory:
    """The states last used, each with the digest of its commit."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[Location, int], tuple[bytes, State]] = OrderedDict()
        self._versions: dict[Location, set[int]] = {}
        self._files = 0
        self._lock = threading.Lock()

    def newest(self, location: Location, upto: int | None = None) -> int | None:
        """The newest version that is remembered, not newer than ``upto``."""
        with self._lock:
            return max((v for v in self._versions.get(location, ()) if upto is None or v <= upto), default=None)

    def recall(self, location: Location, version: int) -> State | None:
        with self._lock:
            found = self._states.get((location, version))
            if found is None:
                return None
            self._states.move_to_end((location, version))
        digest, state = found
        return state if _digest(location, version) == digest else None

    def keep(self, location: Location, version: int, state: State) -> None:
        digest = _digest(location, version)
        if digest is None or len(state.files) > _MOST_FILES:
            return
        with self._lock:
            if (location, version) in self._states:
                self._forget(location, version)
            self._states[location, version] = (digest, state)
            self._versions.setdefault(location, set()).add(version)
            self._files += len(state.files)
            while len(self._states) > _MOST_STATES or self._files > _MOST_FILES:
                self._forget(*next(iter(self._states)))

    def _forget(self, location: Location, version: int) -> None:
        _, state = self._states.pop((location, version))
        self._files -= len(state.files)
        self._versions[location].discard(version)
        if not self._versions[location]:
            del self._versions[location]


_memory = _Memory()


def newest_known(location: Location) -> int | None:
    """The newest version of a table that was replayed lately; it may be stale."""
    return _memory.newest(location)


def state_at(location: Location, version: int) -> State:
    """What the log says at a version. HistoryLost when it can no longer be replayed."""
    nearest = _memory.newest(location, upto=version)
    state = None
    if nearest is not None and version - nearest <= _MOST_STEPS:
        state = _from_memory(location, nearest, version)
        if nearest == version and state is not None:
            return state
    state = state or _from_log(location, version)
    _memory.keep(location, version, state)
    return state


def _from_memory(location: Location, nearest: int, version: int) -> State | None:
    state = _memory.recall(location, nearest)
    if state is None:
        return None
    try:
        return state.after(log.read_actions(location, range(nearest + 1, version + 1)))
    except HistoryLost:
        return None


def _from_log(location: Location, version: int) -> State:
    base = log.listing(location).base(version)
    if base is None:
        return State().after(log.read_actions(location, range(version + 1)))
    start = State().after([checkpoint.read(location.child(log.LOG_FOLDER), base)])
    return start.after(log.read_actions(location, range(base.version + 1, version + 1)))


def _digest(location: Location, version: int) -> bytes | None:
    content = location.read(log.commit_path(version))
    return None if content is None else hashlib.blake2b(content, digest_size=16).digest()
