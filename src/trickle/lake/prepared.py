"""A change of one table that is computed and staged: all that is left to do is to commit it, or to discard it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import StructType

from trickle.lake.commit import TableCommit
from trickle.lake.datafile import DataFile
from trickle.lake.location import Location
from trickle.lake.stage import ChangeFiles, discard


@dataclass(frozen=True)
class Prepared:
    """Staged files and what the commit will say about them."""

    location: Location
    read_version: int
    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    inserted: int = 0
    deleted: int = 0
    stage_ids: tuple[str, ...] = ()
    schema: StructType | None = None
    data_change: bool = True
    changes: ChangeFiles | None = None
    """The exact change rows, where they are kept; else the added and removed files are the change."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.adds and not self.removes and self.schema is None

    def as_commit(self, *, app: tuple[str, int] | None = None, info: Mapping[str, Any] | None = None) -> TableCommit:
        """The commit of this change; ``info`` is added to its note."""
        return TableCommit(
            location=self.location,
            read_version=self.read_version,
            adds=self.adds,
            removes=self.removes,
            info={**self.info, **(info or {})},
            schema=self.schema,
            app=app,
            data_change=self.data_change,
        )

    def discard(self) -> None:
        """Remove the staged files."""
        for stage_id in self.stage_ids:
            discard(self.location, stage_id)


def note(kind: str, inserted: int, deleted: int, changes: ChangeFiles | None = None) -> dict[str, Any]:
    """What a commit says about itself. Without ``changes`` readers take the added and removed files for the change."""
    info: dict[str, Any] = {"kind": kind, "inserted": inserted, "deleted": deleted}
    if changes is not None:
        info["changes"] = [{"path": path, "rows": rows} for path, rows in changes.files]
    return info


UNCHANGED: Mapping[str, Any] = {"inserted": 0, "deleted": 0, "changes": []}
"""What the commit of a mere rewrite says: no reader sees a change."""


@contextmanager
def staging(location: Location) -> Iterator[list[str]]:
    """A list of stage ids; when the block fails, what was staged under them is discarded."""
    stage_ids: list[str] = []
    try:
        yield stage_ids
    except BaseException:
        for stage_id in stage_ids:
            discard(location, stage_id)
        raise
