"""Lake tables as sources: where their history stands now, without a Spark job.

A position is a Delta version of one incarnation of a table. A base table and an attached table stand at the newest
version of their log; a stream table stands at the version the catalog pins, so that a unit is seen whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from trickle.catalog.records import Kind, Relation, StreamTable
from trickle.errors import InternalError
from trickle.lake.location import Location
from trickle.lake.snapshot import Snapshot, latest_version, open_snapshot


@dataclass(frozen=True)
class LakePosition:
    """A version of one incarnation of a table."""

    uid: str
    version: int

    def __str__(self) -> str:
        return f"{self.version}@{self.uid}"

    @staticmethod
    def parse(text: str) -> LakePosition:
        """The position from its text.

        >>> LakePosition.parse("12@ab").version
        12
        """
        version, _, uid = text.partition("@")
        if not version.isdigit() or not uid:
            raise InternalError(f"not a position of a lake table: {text!r}")
        return LakePosition(uid, int(version))


def current(
    relation: Relation, location: Location, stream: StreamTable | None, known: LakePosition | None
) -> LakePosition | None:
    """Where a source stands now; None for a stream table that has never been filled."""
    match relation.kind:
        case Kind.STREAM_TABLE:
            if stream is None or stream.version is None:
                return None
            return LakePosition(relation.uid, stream.version)
        case Kind.TABLE | Kind.ATTACHED:
            base = known.version if known is not None and known.uid == relation.uid else None
            return LakePosition(relation.uid, latest_version(location, base))
        case Kind.VIEW:
            raise InternalError(f"a view has no position: {relation.name}")


def snapshot_at(location: Location, position: LakePosition | None) -> Snapshot:
    """The table at a position, or at its newest version."""
    return open_snapshot(location, None if position is None else position.version)
