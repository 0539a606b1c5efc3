"""One version of a Delta table: its files, schema, properties.

The log is replayed here and not by delta-rs: partition values come as the log spells them, unknown statistics of one
file stay that file's own, deletion vectors keep their identity, and a table is refused by feature. The first replay of
a large table takes longer than delta-rs does (about three times at 10,000 files); later ones start from the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from trickle.errors import CorruptTable
from trickle.lake import log, protocol
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.replay import State, newest_known, state_at

__all__ = ["DataFile", "Snapshot", "latest_version", "open_snapshot"]

_STEPS_FORWARD = 32


@dataclass(frozen=True)
class Snapshot:
    """A table at one version."""

    location: Location
    version: int
    table_id: str
    schema: StructType
    partition_by: tuple[str, ...]
    files: tuple[DataFile, ...]
    properties: Mapping[str, str]


def open_snapshot(location: Location, version: int | None = None) -> Snapshot:
    """The table at a version, the newest by default.

    UnknownTable when there is no Delta table, HistoryLost when the version is gone, UnsupportedTable by feature.
    """
    wanted = latest_version(location, newest_known(location)) if version is None else version
    return _snapshot(location, wanted, state_at(location, wanted))


def latest_version(location: Location, known: int | None = None) -> int:
    """The newest version. Two look-ups and no listing when ``known`` is still the newest."""
    if known is not None and location.exists(log.commit_path(known)):
        for version in range(known, known + _STEPS_FORWARD):
            if not location.exists(log.commit_path(version + 1)):
                return version
    return log.listing(location).latest


def _snapshot(location: Location, version: int, state: State) -> Snapshot:
    if state.protocol is None or state.metadata is None:
        raise CorruptTable("the log names no protocol or no schema", detail=f"table at {location.uri}")
    protocol.check(location, state.protocol, state.metadata)
    return Snapshot(
        location=location,
        version=version,
        table_id=state.metadata["id"],
        schema=log.parse_schema(location, state.metadata["schemaString"]),
        partition_by=tuple(state.metadata.get("partitionColumns") or ()),
        files=tuple(state.files.values()),
        properties=dict(state.metadata.get("configuration") or {}),
    )
