"""Stream tables that live in an attached PostgreSQL database, as readers see them.

How their rows are read is known to a layer above this one, which says so here.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from trickle.catalog.outside import Database, Hosted
from trickle.warehouse import Warehouse

Reader = Callable[[Warehouse, Hosted, StructType], DataFrame]

_readers: list[Reader] = []


def read_by(reader: Reader) -> None:
    """Have rows read by this function."""
    _readers[:] = [reader]


def shown_home(database: Database, hosted: Hosted) -> str:
    """Where it lives, for people."""
    return f"{database.name}: {hosted.schema}.{hosted.table}"


def columns_of(hosted: Hosted) -> StructType:
    """Its columns, as they were when it was made."""
    return StructType.fromJson(dict(hosted.columns))


def frame_of(warehouse: Warehouse, hosted: Hosted) -> DataFrame:
    """Its rows, as they are when they are asked for."""
    (reader,) = _readers
    return reader(warehouse, hosted, columns_of(hosted))
