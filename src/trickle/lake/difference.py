"""What lies between two versions, from the log alone.

Each commit counts once, by the best account it gives of itself: the exact change rows that Trickle kept, else its
change data feed, else its added and removed files. The accounts of commits add up, so they may be mixed; only files
that were added and removed again cancel before anything is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import StructType

from trickle.errors import HistoryLost
from trickle.lake import log
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.log import Commit
from trickle.lake.snapshot import Snapshot, open_snapshot

INFO_KEY = "trickle"

_Identity = tuple[str, str | None]


@dataclass(frozen=True)
class ExactChanges:
    """The change rows that one commit of Trickle kept."""

    paths: tuple[str, ...]
    inserted: int | None
    deleted: int | None


@dataclass(frozen=True)
class Difference:
    """The changes of a range of versions, as what must be read."""

    schemas: tuple[StructType, ...]
    """Every schema that was in force, the newest last."""
    inserted: tuple[DataFile, ...] = ()
    """Files whose rows all count +1."""
    deleted: tuple[DataFile, ...] = ()
    """Files whose rows all count -1."""
    revised: tuple[tuple[DataFile, DataFile], ...] = ()
    """Files that stayed and got another deletion vector: before and after."""
    exact: tuple[ExactChanges, ...] = ()
    feeds: tuple[Commit, ...] = ()
    """Commits with a change data feed."""
    present: frozenset[_Identity] = frozenset()
    """Files of the newest version: these are there for certain."""


def between(location: Location, old: int, new: int) -> Difference:
    """The difference of the versions (old, new]. HistoryLost when neither commits nor snapshots tell it."""
    newest = open_snapshot(location, new)
    if old == new:
        return Difference((newest.schema,))
    if old > new:
        raise log.history_lost(location, old, new)
    before = _try_open(location, old)
    try:
        commits = log.read_commits(location, old, new)
    except HistoryLost:
        if before is None:
            raise
        return _of_snapshots(before, newest)
    if before is None and any(commit.metadata_changed for commit in commits):
        raise log.history_lost(location, old, new)
    return _of_commits(before, commits, newest)


def exact_changes(info: Mapping[str, Any]) -> ExactChanges | None:
    """The account of change rows in a commit's information, None when it gives none."""
    ours = info.get(INFO_KEY)
    if isinstance(ours, str):
        try:
            ours = json.loads(ours)
        except ValueError:
            return None
    if not isinstance(ours, Mapping) or ours.get("changes") is None:
        return None
    return ExactChanges(
        paths=tuple(change["path"] for change in ours["changes"]),
        inserted=ours.get("inserted"),
        deleted=ours.get("deleted"),
    )


def _try_open(location: Location, version: int) -> Snapshot | None:
    try:
        return open_snapshot(location, version)
    except HistoryLost:
        return None


def _of_snapshots(before: Snapshot, after: Snapshot) -> Difference:
    old = {file.identity: file for file in before.files}
    new = {file.identity: file for file in after.files}
    inserted = [file for identity, file in new.items() if identity not in old]
    deleted = [file for identity, file in old.items() if identity not in new]
    return _paired((before.schema, after.schema), inserted, deleted, frozenset(new))


def _of_commits(before: Snapshot | None, commits: Sequence[Commit], after: Snapshot) -> Difference:
    known = _described(before, commits)
    inserted, deleted = _net(before.files if before else (), commits)
    found = _paired(
        ((before or after).schema, *(c.schema for c in commits if c.schema is not None), after.schema),
        inserted,
        [_completed(file, known, after) for file in deleted],
        frozenset(file.identity for file in after.files),
    )
    exact = [exact_changes(commit.info) for commit in commits]
    return replace(
        found,
        exact=tuple(kept for kept in exact if kept is not None),
        feeds=tuple(c for c, kept in zip(commits, exact, strict=True) if c.cdc and kept is None),
    )


def _net(start: Iterable[DataFile], commits: Iterable[Commit]) -> tuple[list[DataFile], list[DataFile]]:
    """Files that commits without a better account added and removed, those of both kinds left out."""
    live = {file.identity for file in start}
    weights: dict[_Identity, int] = {}
    files: dict[_Identity, DataFile] = {}
    for commit in commits:
        out = {file.identity for file in (*commit.removes, *commit.moved_out)}
        if exact_changes(commit.info) is None and not commit.cdc:
            # An add of a file that is there already only brings new statistics.
            news = [(file, +1) for file in commit.adds if file.identity not in live or file.identity in out]
            for file, weight in [*news, *((file, -1) for file in commit.removes)]:
                files.setdefault(file.identity, file)
                weights[file.identity] = weights.get(file.identity, 0) + weight
        live -= out
        live |= {file.identity for file in (*commit.adds, *commit.moved_in)}
    return (
        [file for identity, file in files.items() if weights[identity] > 0],
        [file for identity, file in files.items() if weights[identity] < 0],
    )


def _described(before: Snapshot | None, commits: Iterable[Commit]) -> dict[_Identity, DataFile]:
    """All that the log says about the files of the range."""
    files = list(before.files) if before else []
    for commit in commits:
        files += [*commit.adds, *commit.moved_in]
    return {file.identity: file for file in files}


def _completed(removed: DataFile, known: Mapping[_Identity, DataFile], after: Snapshot) -> DataFile:
    """A removed file with what the log said when it was added: remove actions may be bare."""
    found = known.get(removed.identity, removed)
    if set(after.partition_by) - set(found.partition) and not found.partition:
        raise HistoryLost(
            "the partition values of a removed file are no longer known",
            detail=f"{removed.path} in {after.location.uri}",
            hint="reinitialize what was built on the older version",
        )
    return found


def _paired(
    schemas: tuple[StructType, ...],
    inserted: Sequence[DataFile],
    deleted: Sequence[DataFile],
    present: frozenset[_Identity],
) -> Difference:
    """Tell files that came or went from those that only got another deletion vector."""
    gone = {file.path: file for file in deleted}
    revised = [(gone.pop(file.path), file) for file in inserted if file.path in gone]
    changed = {file.path for _, file in revised}
    return Difference(
        schemas=schemas,
        inserted=tuple(file for file in inserted if file.path not in changed),
        deleted=tuple(gone.values()),
        revised=tuple(revised),
        present=present,
    )
