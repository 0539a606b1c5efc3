"""The changes of one source between two positions, shared by everyone who reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from trickle.engine import Engine
from trickle.errors import HistoryLost
from trickle.lake.changes import ChangeCount, changes, consolidate, count_changes
from trickle.lake.local import local_changes
from trickle.lake.location import Location
from trickle.sources.lake import LakePosition, is_same_table


@dataclass(frozen=True)
class ChangeBuffer:
    """What lies between two positions of a source: counted from the log, read on demand."""

    location: Location
    old: LakePosition
    new: LakePosition

    @property
    def is_reachable(self) -> bool:
        """Changes exist only within one incarnation of a table, forwards."""
        return is_same_table(self.location, self.old, self.new)

    def count(self) -> ChangeCount:
        """How many rows changed, from the log alone; unknown where the log does not say."""
        if not self.is_reachable:
            return ChangeCount(None, None, exact=False)
        try:
            return count_changes(self.location, self.old.version, self.new.version)
        except HistoryLost:
            return ChangeCount(None, None, exact=False)

    def known_rows(self) -> int | None:
        """Exact number of changed rows, or None when only reading would tell."""
        count = self.count()
        if not count.exact or count.inserted is None or count.deleted is None:
            return None
        return count.inserted + count.deleted

    def local(self, columns: Sequence[str]) -> pa.Table | None:
        """The net change as rows of weight +1 or -1, read on the driver; None when that is left to Spark."""
        return local_changes(self.location, self.old.version, self.new.version, columns) if self.is_reachable else None

    def rows(self, engine: Engine, columns: Sequence[str] | None = None) -> DataFrame:
        """The net change as weighted rows."""
        if not self.is_reachable:
            raise HistoryLost(
                "the source was replaced between the two positions",
                detail=f"{self.old} and {self.new}",
                hint="reinitialise what reads it",
            )
        return consolidate(changes(engine, self.location, self.old.version, self.new.version, columns=columns))
