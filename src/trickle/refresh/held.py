"""Rows that were computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.engine import Engine
from trickle.lake.scan import pick
from trickle.operators import Operator


@dataclass(frozen=True)
class Held:
    """Rows that are computed, or cost nothing to compute. ``rows`` is their number, or 1 for some.

    ``table`` has them where the driver does, and ``schema`` the types that they have for Spark; otherwise ``frame`` has
    them. ``tree`` is what they come from when they only pick from what is at hand.
    """

    frame: DataFrame | None
    rows: int
    table: pa.Table | None = None
    schema: StructType | None = None
    tree: Operator | None = None

    def read(self, engine: Engine, columns: Sequence[str]) -> DataFrame:
        """Some columns of the rows, or more."""
        if self.frame is not None:
            return self.frame
        assert self.table is not None, "rows are on the driver or in a frame"
        assert self.schema is not None, "rows on the driver have types"
        # Where only their number counts, one column tells it.
        wanted = columns or self.table.column_names[:1]
        return engine.from_arrow(self.table.select(wanted), pick(self.schema, wanted))
