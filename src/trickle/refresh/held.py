"""Rows that were computed once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Held:
    """A DataFrame that does not compute its rows again. ``rows`` is their number."""

    frame: DataFrame
    rows: int
