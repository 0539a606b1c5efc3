"""Rows that were computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.lake.scan import pick
from trickle.operators import Operator
from trickle.refresh.texts import Known


@dataclass(frozen=True)
class Held:
    """Rows that are computed, or cost nothing to compute. ``rows`` is their number, or 1 for some.

    ``table`` has them where the driver does, and ``schema`` the types that they have for Spark. Rows that only pick
    from what is at hand are not computed: ``tree`` stands where they are used, and ``known`` is what it comes again as.
    All others are in ``frame``.
    """

    frame: DataFrame | None
    rows: int
    table: pa.Table | None = None
    schema: StructType | None = None
    tree: Operator | None = None
    known: Known | None = None

    def at_hand(self, columns: Sequence[str]) -> tuple[pa.Table, StructType] | None:
        """Some columns of the rows where the driver has them, with the types that they have for Spark."""
        if self.table is None:
            return None
        assert self.schema is not None, "rows on the driver have types"
        # Where only their number counts, one column tells it.
        wanted = columns or self.table.column_names[:1]
        return self.table.select(wanted), pick(self.schema, wanted)
