"""What lies between two versions, from the log alone.

Each commit counts once, by the best account it gives of itself: the exact change rows that Trickle kept, else its
change data feed, else its added and removed files. The accounts of commits add up, so they may be mixed; only files
that were added and removed again cancel before anything is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    whole: tuple[tuple[DataFile, int], ...] = ()
    """Files whose rows all count with the same weight: mostly +1 or -1."""
    revised: tuple[tuple[DataFile, DataFile], ...] = ()
    """Files that stayed and got another deletion vector: before and after."""
    exact: tuple[ExactChanges, ...] = ()
    feed: tuple[DataFile, ...] = ()
    """Files of change data feeds."""
    rewritten: tuple[tuple[DataFile, int], ...] = ()
    """The data files of the commits with a feed: they bound its rows."""
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
    whole = [(file, 1) for identity, file in new.items() if identity not in old]
    whole += [(file, -1) for identity, file in old.items() if identity not in new]
    return _paired(Difference((before.schema, after.schema), tuple(whole), present=frozenset(new)))


def _of_commits(before: Snapshot | None, commits: Sequence[Commit], after: Snapshot) -> Difference:
    known = _described(before, commits)
    kept = {commit.version: exact_changes(commit.info) for commit in commits}
    fed = [commit for commit in commits if commit.cdc and kept[commit.version] is None]
    plain = [commit.version for commit in commits if not commit.cdc and kept[commit.version] is None]
    rewritten = [(f, 1) for c in fed for f in c.adds] + [(f, -1) for c in fed for f in c.removes]
    return _paired(
        Difference(
            schemas=((before or after).schema, *(c.schema for c in commits if c.schema is not None), after.schema),
            whole=_completed(_net(before.files if before else (), commits, plain), known, after),
            exact=tuple(account for account in kept.values() if account is not None),
            feed=tuple(file for commit in fed for file in commit.cdc),
            rewritten=_completed(rewritten, known, after),
            present=frozenset(file.identity for file in after.files),
        )
    )


def _net(start: Iterable[DataFile], commits: Iterable[Commit], plain: Collection[int]) -> list[tuple[DataFile, int]]:
    """Files that the ``plain`` commits added and removed, with the weights that did not cancel.

    A weight may be beyond one: a file that was added, compacted away without a change of data, and restored.
    """
    live = {file.identity for file in start}
    weights: Counter[_Identity] = Counter()
    files: dict[_Identity, DataFile] = {}
    for commit in commits:
        out = {file.identity for file in (*commit.removes, *commit.moved_out)}
        if commit.version in plain:
            # An add of a file that is there already only brings new statistics.
            news = [file for file in commit.adds if file.identity not in live or file.identity in out]
            files.update((file.identity, file) for file in (*commit.removes, *news))
            weights.update(file.identity for file in news)
            weights.subtract(file.identity for file in commit.removes)
        live -= out
        live |= {file.identity for file in (*commit.adds, *commit.moved_in)}
    return [(files[identity], weight) for identity, weight in weights.items() if weight]


def _described(before: Snapshot | None, commits: Iterable[Commit]) -> dict[_Identity, DataFile]:
    """All that the log says about the files of the range."""
    files = list(before.files) if before else []
    for commit in commits:
        files += [*commit.adds, *commit.moved_in]
    return {file.identity: file for file in files}


def _completed(
    files: Iterable[tuple[DataFile, int]], known: Mapping[_Identity, DataFile], after: Snapshot
) -> tuple[tuple[DataFile, int], ...]:
    """Files with what the log said when they were added: remove actions may be bare."""
    found = tuple((known.get(file.identity, file), weight) for file, weight in files)
    for file, _ in found:
        if after.partition_by and not file.partition and file.identity not in known:
            raise HistoryLost(
                "the partition values of a removed file are no longer known",
                detail=f"{file.path} in {after.location.uri}",
                hint="reinitialize what was built on the older version",
            )
    return found


def _paired(found: Difference) -> Difference:
    """Tell files that came or went from those that only got another deletion vector."""
    gone = {file.path: file for file, weight in found.whole if weight == -1}
    come = {file.path: file for file, weight in found.whole if weight == 1}
    stayed = gone.keys() & come.keys()
    return replace(
        found,
        whole=tuple((file, weight) for file, weight in found.whole if file.path not in stayed),
        revised=tuple((gone[path], come[path]) for path in sorted(stayed)),
    )
