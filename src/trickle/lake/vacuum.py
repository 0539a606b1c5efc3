"""Removing files that nobody needs: not the kept versions, not any later one, not a commit that is under way.

delta-rs could vacuum too, but it writes commits of its own and does not know change rows or intents.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from trickle.errors import InvalidOption
from trickle.lake.actions import Action
from trickle.lake.commit import INFO_KEY
from trickle.lake.location import Location, StoredFile
from trickle.lake.log import LOG_FOLDER, read_actions
from trickle.lake.snapshot import open_snapshot
from trickle.lake.stage import CHANGES_FOLDER, stage_of

_HOUR_MS = 3_600_000


def vacuum(
    location: Location,
    *,
    keep_versions: Collection[int],
    retention_hours: float,
    protected_stages: Collection[str] = (),
    dry_run: bool = False,
) -> list[str]:
    """Remove files that no version from the oldest kept one on needs, and return their paths.

    A file goes only when it is older than the retention and was not removed from the table within it. The newest
    version is always kept; stages whose names begin with one of ``protected_stages`` belong to work under way.
    """
    if retention_hours < 0:
        raise InvalidOption("the retention is negative", detail=f"{retention_hours} hours")
    newest = open_snapshot(location)
    oldest = min([*keep_versions, newest.version])
    before = int(time.time() * 1000 - retention_hours * _HOUR_MS)
    needed = _needed(location, oldest, newest.version, before)
    gone = [
        file.path
        for file in location.walk()
        if _is_ours(file) and file.path not in needed and file.modified_ms <= before
        if not (stage_of(file.path) or "").startswith(tuple(protected_stages))
    ]
    if not dry_run:
        for path in gone:
            location.delete(path)
        _remove_empty_folders(location, gone)
    return gone


def _is_ours(file: StoredFile) -> bool:
    """Data files and change rows. Other hidden folders (the log, change data feeds, indexes) belong to others."""
    folders = file.path.split("/")
    if folders[0] == CHANGES_FOLDER:
        return True
    return not any(part.startswith(("_", ".")) for part in folders[:-1]) and _is_data(folders[-1])


def _is_data(name: str) -> bool:
    return not name.startswith("_") and name.endswith((".parquet", ".parquet.crc"))


def _needed(location: Location, oldest: int, newest: int, since_ms: int) -> set[str]:
    """Paths of all files of the version ``oldest``, of what came after it, and of what went since a moment."""
    needed = {unquote(file.path) for file in open_snapshot(location, oldest).files}
    for actions in read_actions(location, range(oldest + 1, newest + 1)):
        needed.update(_named(actions))
    for actions in read_actions(location, _recent(location, oldest, since_ms)):
        needed.update(_named(actions))
    return needed


def _recent(location: Location, upto: int, since_ms: int) -> list[int]:
    """Commits up to a version that are younger than a moment."""
    found = []
    for file in location.walk(LOG_FOLDER):
        name = Path(file.path).name
        if name.endswith(".json") and name[:-5].isdigit() and int(name[:-5]) <= upto and file.modified_ms > since_ms:
            found.append(int(name[:-5]))
    return sorted(found)


def _named(actions: Iterable[Action]) -> Iterable[str]:
    """Every file that a commit names: added, removed, or holding its changes."""
    for action in actions:
        for kind in ("add", "remove", "cdc"):
            if kind in action:
                yield unquote(action[kind]["path"])
        note: Any = action.get("commitInfo", {}).get(INFO_KEY)
        if isinstance(note, dict):
            yield from (change["path"] for change in note.get("changes") or ())


def _remove_empty_folders(location: Location, paths: Iterable[str]) -> None:
    """Object stores have no folders; on a file system they would pile up."""
    if not location.is_local:
        return
    root = Path(location.uri)
    for folder in sorted({parent for path in paths for parent in Path(path).parents}, key=lambda p: -len(p.parts)):
        full = root / folder
        if full != root and full.is_dir() and not any(full.iterdir()):
            full.rmdir()
