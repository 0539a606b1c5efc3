"""Checkpoints: the state of a log at one version, as Parquet (one file, several parts, or with sidecars)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trickle.errors import HistoryLost
from trickle.lake.actions import parse_lines
from trickle.lake.location import Location

_NAME = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-f-]{36}))?\.(?P<format>parquet|json)\Z"
)
_COLUMNS = (
    "protocol",
    "metaData",
    "sidecar",
    *(f"add.{field}" for field in ("path", "partitionValues", "size", "stats", "stats_parsed", "deletionVector")),
)
_ACTIONS = ("protocol", "metaData", "sidecar", "add")


@dataclass(frozen=True)
class Checkpoint:
    """The files that hold one complete checkpoint, relative to the log's folder."""

    version: int
    names: tuple[str, ...]


def find(names: Iterable[str]) -> list[Checkpoint]:
    """The complete checkpoints among the names of a log's folder, oldest first."""
    whole: dict[int, Checkpoint] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for name in sorted(names):
        if not (match := _NAME.match(name)):
            continue
        version = int(match["version"])
        if match["parts"]:
            parts.setdefault((version, int(match["parts"])), []).append(name)
        else:
            whole[version] = Checkpoint(version, (name,))
    for (version, expected), found in parts.items():
        if len(found) == expected:
            whole.setdefault(version, Checkpoint(version, tuple(found)))
    return [whole[version] for version in sorted(whole)]


def read(log: Location, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """The checkpoint's actions, each as a JSON commit would spell it; sidecars are followed."""
    for name in checkpoint.names:
        for action in _read_file(log, name):
            if sidecar := action.get("sidecar"):
                yield from _read_file(log, f"_sidecars/{sidecar['path']}")
            else:
                yield action


def _read_file(log: Location, name: str) -> Iterator[dict[str, Any]]:
    content = log.read(name)
    if content is None:
        raise HistoryLost("a checkpoint vanished while it was read", detail=f"{name} in {log.uri}")
    if name.endswith(".json"):
        yield from parse_lines(content)
        return
    table = pq.ParquetFile(pa.BufferReader(content)).read(columns=list(_COLUMNS))
    for kind in _ACTIONS:
        if kind in table.column_names:
            column = table.column(kind)
            for value in column.filter(pc.is_valid(column)).to_pylist():
                yield {kind: value}
