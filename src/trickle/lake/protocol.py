"""Which Delta tables can be read: what is not known is refused by name, never misread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trickle.errors import UnsupportedTable
from trickle.lake.location import Location

READER_VERSIONS = (1, 2, 3)

SUPPORTED_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features that scans honour, or that do not touch how rows are read."""


def check(location: Location, protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Refuse a table whose rows this reader would not read right."""
    version = protocol["minReaderVersion"]
    if version not in READER_VERSIONS:
        raise _refusal(location, f"Delta reader version {version}")
    unknown = sorted(set(protocol.get("readerFeatures") or ()) - SUPPORTED_FEATURES - {"columnMapping"})
    if unknown:
        raise _refusal(location, ", ".join(f"Delta feature {feature}" for feature in unknown))
    # The feature may be listed and lie idle; the property says whether physical names differ.
    if (mode := _column_mapping(metadata)) != "none":
        raise _refusal(location, f"Delta feature columnMapping (mode {mode})")
    provider = (metadata.get("format") or {}).get("provider") or "parquet"
    if provider != "parquet":
        raise _refusal(location, f"data files of format {provider}")


def _column_mapping(metadata: Mapping[str, Any]) -> str:
    configuration = dict(metadata.get("configuration") or {})
    return str(configuration.get("delta.columnMapping.mode") or "none").lower()


def _refusal(location: Location, what: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"table needs {what}, which Trickle does not read",
        detail=f"table at {location.uri}",
        hint="rewrite it without that feature, for example with CREATE TABLE ... AS SELECT in the engine that wrote it",
    )
