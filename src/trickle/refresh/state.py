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
    moment: str = ""
    """The time that the clock's functions stood for."""
    added: int = 0
    """Refreshes by changes since floating sums were last computed anew; 0 where there are none."""

    @staticmethod
    def of(stream: StreamTable) -> State | None:
        """The state of a stream table; None for one that is kept in full only, or was never filled."""
        found = stream.state
        if not found.get("signature"):
            return None
        return State(
            signature=found["signature"],
            tables=found["tables"],
            frontier={int(source): position for source, position in found["frontier"].items()},
            moment=found.get("moment", ""),
            added=found.get("added", 0),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, JSON's own types only."""
        return {
            "signature": self.signature,
            "tables": dict(self.tables),
            "frontier": {str(source): position for source, position in self.frontier.items()},
            "moment": self.moment,
            "added": self.added,
        }


def kept_in_full(why_not: str) -> dict[str, Any]:
    """What a stream table remembers that is kept in full only: why, as a code and words (``CODE: words``)."""
    return {"signature": "", "why_not": why_not}


def why_not(stream: StreamTable) -> str:
    """Why a stream table is kept in full only; empty for one that is not."""
    return str(stream.state.get("why_not", ""))


def folder_of(signature: str, stage: Stage) -> str:
    """Where a stage's table lies inside the stream table's folder. Another layout has folders of its own."""
    return f"{INNER_FOLDER}/{signature}_{stage.table.rsplit('_', 1)[-1]}"
