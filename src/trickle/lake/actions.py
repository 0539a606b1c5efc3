"""Entries of a Delta log as data: the same for a JSON commit and for a Parquet checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from trickle.lake.datafile import DataFile

Action = Mapping[str, Any]

# Decimals must not pass through binary floating point.
_STATISTICS = json.JSONDecoder(parse_float=Decimal)


def parse_lines(content: bytes) -> list[dict[str, Any]]:
    """The actions of a JSON commit, one a line. Raises ValueError when a line is not an action."""
    actions = [json.loads(line) for line in content.splitlines() if line.strip()]
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError("a line is not a JSON object")
    return actions


def identity(action: Action) -> tuple[str, str | None]:
    """What makes two file actions speak of the same logical file."""
    return action["path"], vector_id(action.get("deletionVector"))


def vector_id(vector: Action | None) -> str | None:
    """The protocol's unique id of a deletion vector: enough to find its bytes again.

    >>> vector_id({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4})
    'uab^-aqEH.-t@S}K{vb[*k^@4'
    """
    if not vector:
        return None
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def data_file(action: Action) -> DataFile:
    """The file of an add, remove or cdc action. What the log does not say stays unknown."""
    statistics = _statistics(action)
    vector = action.get("deletionVector")
    return DataFile(
        path=action["path"],
        size=action.get("size") or 0,
        partition=_mapping(action.get("partitionValues")),
        rows=statistics.get("numRecords"),
        minimum=statistics.get("minValues") or {},
        maximum=statistics.get("maxValues") or {},
        nulls=statistics.get("nullCount") or {},
        deletion_vector=vector_id(vector),
        deleted=vector["cardinality"] if vector else 0,
    )


def _statistics(action: Action) -> Mapping[str, Any]:
    """Statistics of one file. Empty or broken text means unknown for this file, and for this file only."""
    text = action.get("stats")
    if not text:
        return action.get("stats_parsed") or {}
    try:
        found = _STATISTICS.decode(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _mapping(pairs: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | None) -> dict[str, str | None]:
    """JSON has an object where Arrow has a list of pairs."""
    return dict(pairs or {})
