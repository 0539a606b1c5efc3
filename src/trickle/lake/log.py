"""The log of a Delta table: which versions it holds, and what each commit did."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
from pyspark.sql.types import StructType

from trickle.errors import CorruptTable, HistoryLost, UnknownTable, UnsupportedTable
from trickle.lake import checkpoint
from trickle.lake.actions import data_file, parse_lines
from trickle.lake.checkpoint import Checkpoint
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location

LOG_FOLDER = "_delta_log"

_COMMIT_NAME = re.compile(r"\d{20}\.json\Z")


@dataclass(frozen=True)
class Commit:
    """What one version changed. ``adds`` and ``removes`` are those that change data."""

    version: int
    adds: tuple[DataFile, ...]
    removes: tuple[DataFile, ...]
    cdc: tuple[DataFile, ...]
    info: Mapping[str, Any]
    metadata_changed: bool
    schema: StructType | None
    """The schema that this commit set, None when it set none."""
    moved_in: tuple[DataFile, ...] = ()
    """Files added without a change of data: a compaction, new statistics."""
    moved_out: tuple[DataFile, ...] = ()
    """Files removed without a change of data."""


@dataclass(frozen=True)
class LogListing:
    """What lies in a log's folder."""

    location: Location
    commits: frozenset[int]
    checkpoints: tuple[Checkpoint, ...]

    @cached_property
    def latest(self) -> int:
        return max([*self.commits, *(found.version for found in self.checkpoints)])

    def base(self, version: int) -> Checkpoint | None:
        """The newest checkpoint from which ``version`` can be replayed, None for a replay from the first commit."""
        for found in reversed(self.checkpoints):
            if found.version <= version and self._reaches(found.version + 1, version):
                return found
        if self._reaches(0, version):
            return None
        raise history_lost(self.location, version, self.latest)

    def _reaches(self, first: int, last: int) -> bool:
        return all(version in self.commits for version in range(first, last + 1))


def commit_path(version: int) -> str:
    """Path of a commit below its table.

    >>> commit_path(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{LOG_FOLDER}/{version:020d}.json"


def listing(location: Location) -> LogListing:
    """List the log. UnknownTable when there is none."""
    names = _names(location)
    commits = frozenset(int(name[:20]) for name in names if _COMMIT_NAME.match(name))
    found = LogListing(location, commits, tuple(checkpoint.find(names)))
    if not found.commits and not found.checkpoints:
        raise UnknownTable(
            "no Delta table at this place",
            detail=f"{location.uri} has no {LOG_FOLDER} folder with commits",
            hint="check the path; a Delta table is a folder that holds a folder _delta_log",
        )
    return found


def _names(location: Location) -> list[str]:
    if location.is_local:
        # Names alone: an Arrow listing also asks for the size of every file.
        folder = Path(location.uri, LOG_FOLDER)
        return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    files, _ = location.filesystem()
    return [info.base_name for info in files.get_file_info(pafs.FileSelector(LOG_FOLDER, allow_not_found=True))]


def read_actions(location: Location, versions: Sequence[int]) -> list[list[dict[str, Any]]]:
    """The actions of commits, in order. HistoryLost when one is gone."""
    paths = [commit_path(version) for version in versions]
    if location.is_local or len(paths) < 2:
        contents = [location.read(path) for path in paths]
    else:
        with ThreadPoolExecutor(max_workers=min(16, len(paths))) as pool:
            contents = list(pool.map(location.read, paths))
    return [_parse(location, version, content) for version, content in zip(versions, contents, strict=True)]


def read_commits(location: Location, after: int, upto: int) -> list[Commit]:
    """What the versions after ``after``, up to and with ``upto``, did. HistoryLost when one is gone."""
    versions = range(after + 1, upto + 1)
    return [
        _commit(location, version, actions)
        for version, actions in zip(versions, read_actions(location, versions), strict=True)
    ]


def parse_schema(location: Location, text: str) -> StructType:
    """A schema from the log. UnsupportedTable when it names a type that Spark does not know."""
    try:
        return StructType.fromJson(json.loads(text))
    except Exception as error:  # pyspark raises many classes here, and none of its own for an unknown type
        raise UnsupportedTable(
            "table has a schema that Spark does not read", detail=f"table at {location.uri}: {error}"
        ) from error


def history_lost(location: Location, version: int, latest: int | None = None) -> HistoryLost:
    """The error for a version that can no longer be read."""
    return HistoryLost(
        f"version {version} of the table can no longer be read",
        detail=f"table at {location.uri}" + ("" if latest is None else f", now at version {latest}"),
        hint="its log was cleaned up or the table was replaced: reinitialize what was built on that version",
    )


def _parse(location: Location, version: int, content: bytes | None) -> list[dict[str, Any]]:
    if content is None:
        raise history_lost(location, version)
    try:
        return parse_lines(content)
    except ValueError as error:
        raise CorruptTable(
            f"commit {version} of the log is not readable", detail=f"table at {location.uri}: {error}"
        ) from error


def _commit(location: Location, version: int, actions: list[dict[str, Any]]) -> Commit:
    def files(kind: str, *, data_change: bool) -> tuple[DataFile, ...]:
        found = [a[kind] for a in actions if kind in a]
        return tuple(data_file(a) for a in found if a.get("dataChange", True) is data_change)

    metadata = next((a["metaData"] for a in actions if "metaData" in a), None)
    return Commit(
        version=version,
        adds=files("add", data_change=True),
        removes=files("remove", data_change=True),
        cdc=tuple(data_file(a["cdc"]) for a in actions if "cdc" in a),
        info=next((a["commitInfo"] for a in actions if "commitInfo" in a), {}),
        metadata_changed=metadata is not None,
        schema=parse_schema(location, metadata["schemaString"]) if metadata else None,
        moved_in=files("add", data_change=False),
        moved_out=files("remove", data_change=False),
    )
