"""Lake tables as sources: where their history stands now, without a Spark job.

A position is a Delta version of one incarnation of a table. A base table and an attached table stand at the newest
version of their log; what the catalog pins (stream tables, replicas) stands at the pinned version, so that a unit is
seen whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from trickle.catalog.records import Kind, Relation
from trickle.errors import InternalError
from trickle.lake.location import Location
from trickle.lake.log import commit_path
from trickle.lake.snapshot import latest_version


@dataclass(frozen=True)
class LakePosition:
    """A version of one incarnation of a table.

    The stamp of an attached table's commit tells a table that its owner removed and wrote anew from the one that was
    there before: versions alone would look alike.
    """

    uid: str
    version: int
    stamp: str = ""

    def __str__(self) -> str:
        return f"{self.version}@{self.uid}" + (f"#{self.stamp}" if self.stamp else "")

    @staticmethod
    def parse(text: str) -> LakePosition:
        """The position from its text.

        >>> LakePosition.parse("12@ab#c")
        LakePosition(uid='ab', version=12, stamp='c')
        """
        version, _, rest = text.partition("@")
        uid, _, stamp = rest.partition("#")
        if not version.isdigit() or not uid:
            raise InternalError(f"not a position of a lake table: {text!r}")
        return LakePosition(uid, int(version), stamp)


def current(relation: Relation, location: Location, pinned: int | None, known: LakePosition | None) -> LakePosition:
    """Where a source stands now: at its pin, where it has one. A stream table must have been filled."""
    if pinned is not None:
        return LakePosition(relation.uid, pinned)
    base = known.version if known is not None and known.uid == relation.uid else None
    match relation.kind:
        case Kind.STREAM_TABLE | Kind.REPLICA:
            raise InternalError(f"{relation.kind.words} without contents has no position: {relation.name}")
        case Kind.TABLE:
            return LakePosition(relation.uid, latest_version(location, base))
        case Kind.ATTACHED:
            version = latest_version(location, base)
            return LakePosition(relation.uid, version, stamp(location, version))
        case Kind.VIEW:
            raise InternalError(f"a view has no position: {relation.name}")


def stamp(location: Location, version: int) -> str:
    """When and how large a commit was written; empty when its file is gone from the log."""
    file = location.find(commit_path(version))
    return "" if file is None else f"{file.size:x}.{file.modified_ms:x}"


def is_same_table(location: Location, old: LakePosition, new: LakePosition) -> bool:
    """Whether two positions lie in the history of one and the same table, the old one first."""
    if old.uid != new.uid or old.version > new.version:
        return False
    if old.version == new.version:
        return old.stamp == new.stamp
    return not old.stamp or stamp(location, old.version) in ("", old.stamp)
