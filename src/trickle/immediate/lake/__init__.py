"""IMMEDIATE stream tables in the lake: a statement on a base table and all that follow it are committed as one unit."""

from trickle.immediate.lake.landing import Following
from trickle.immediate.lake.rebasing import refresh_stream_table

__all__ = ["Following", "refresh_stream_table"]
