"""Making and removing Delta tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql.types import StructType

from trickle.errors import DuplicateName, InvalidOption
from trickle.lake.location import Location
from trickle.lake.log import LOG_FOLDER, commit_path
from trickle.lake.properties import check_properties
from trickle.lake.snapshot import Snapshot, open_snapshot
from trickle.lake.types import check_partition, delta_schema, storable

DEFAULT_PROPERTIES = {
    "delta.checkpointInterval": "100",
    # A frontier may need any version: the log is only shortened by whoever knows the frontiers.
    "delta.enableExpiredLogCleanup": "false",
}


def create(
    location: Location,
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    info: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Make an empty table. DuplicateName when one is there already."""
    stored = storable(schema)
    columns = check_partition(stored, partition_by)
    check_properties(properties or {})
    if exists(location):
        raise _taken(location)
    try:
        DeltaTable.create(
            location.uri,
            delta_schema(stored),
            partition_by=list(columns),
            description=comment,
            configuration={**DEFAULT_PROPERTIES, **(properties or {})},
            storage_options=location.storage_options,
            commit_properties=CommitProperties(
                custom_metadata={"trickle": {"kind": "create", **(info or {})}}, max_commit_retries=0
            ),
            raise_if_key_not_exists=False,
        )
    except DeltaError as error:
        if exists(location):
            raise _taken(location) from None
        raise InvalidOption("the table cannot be made", detail=str(error)) from None
    return open_snapshot(location, 0)


def exists(location: Location) -> bool:
    """Whether a Delta table lies here."""
    if location.exists(commit_path(0)):
        return True
    return any(file.path.endswith((".json", ".parquet")) for file in location.walk(LOG_FOLDER))


def drop(location: Location) -> None:
    """Remove the table with all its files; nothing happens when there is none."""
    # Without its log the rest is no table any more, whatever stops us half way.
    location.delete(LOG_FOLDER)
    location.delete("")


def _taken(location: Location) -> DuplicateName:
    return DuplicateName("a Delta table is here already", detail=location.uri, hint="drop it or choose another place")
