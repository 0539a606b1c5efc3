"""Rows that were computed once."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from trickle.operators import Operator


@dataclass(frozen=True)
class Held:
    """A DataFrame whose rows are computed, or cost nothing to compute. ``rows`` is their number, or 1 for some.

    ``table`` has them where the driver does; ``tree`` is what they come from when they only pick from what is at hand.
    """

    frame: DataFrame
    rows: int
    table: pa.Table | None = None
    tree: Operator | None = None
