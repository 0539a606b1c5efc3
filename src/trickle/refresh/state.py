"""What a stream table remembers about its storage: how it is laid out, and where its inner tables stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trickle.catalog.records import StreamTable
from trickle.delta.stages import Stage
from trickle.lake.stages import INNER_FOLDER


@dataclass(frozen=True)
class State:
    """The layout of the stored columns (a signature), and the versions of the inner tables at a frontier.

    A full refresh leaves the inner tables where they are; their frontier is then behind the stream table's own.
    """

    signature: str
    tables: Mapping[str, int] = field(default_factory=dict)
    frontier: Mapping[int, str] = field(default_factory=dict)

    @staticmethod
    def of(stream: StreamTable) -> State | None:
        """The state of a stream table; None for one that is kept in full only, or was never filled."""
        found = stream.state
        if "signature" not in found:
            return None
        return State(
            signature=found["signature"],
            tables=found["tables"],
            frontier={int(source): position for source, position in found["frontier"].items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, JSON's own types only."""
        return {
            "signature": self.signature,
            "tables": dict(self.tables),
            "frontier": {str(source): position for source, position in self.frontier.items()},
        }


def folder_of(signature: str, stage: Stage) -> str:
    """Where a stage's table lies inside the stream table's folder. Another layout has folders of its own."""
    return f"{INNER_FOLDER}/{signature}_{stage.table.rsplit('_', 1)[-1]}"
