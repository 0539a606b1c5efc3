"""The rows that benchmarks work on: made by Spark, the same on every run."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle import Trickle

COLUMNS = "id BIGINT, grp INT, amount DECIMAL(12,2)"
SUMMARY = "SELECT grp, COUNT(*) AS n, SUM(amount) AS total FROM {table} GROUP BY grp"


def fill(t: Trickle, table: str, rows: int, groups: int, files: int | None = None) -> None:
    """Make a table and fill it; ids ascend from file to file."""
    t.sql(f"CREATE TABLE {table} ({COLUMNS})")
    t.write(table, frame(t, rows, groups, files))


def frame(t: Trickle, rows: int, groups: int, files: int | None) -> DataFrame:
    """Rows with ids from 0, spread evenly over the groups."""
    ids = t.warehouse.engine.spark.range(0, rows, 1, files)
    amount = (F.col("id") % 10_000 / 100).cast("decimal(12,2)").alias("amount")
    return ids.select("id", (F.col("id") % groups).cast("int").alias("grp"), amount)


def batch(first: int, rows: int, groups: int) -> pa.Table:
    """New rows in memory."""
    ids = range(first, first + rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "grp": pa.array([i % groups for i in ids], pa.int32()),
            "amount": pa.array([Decimal(i % 100) for i in ids], pa.decimal128(12, 2)),
        }
    )


@dataclass
class Changing:
    """Changes of a filled table: of each 70 % new rows, 15 % updated and 15 % deleted ones, taken from the newest."""

    table: str
    rows: int
    groups: int
    _next: int = field(init=False)
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        self._next = self._left = self.rows

    def apply(self, t: Trickle, changed: int) -> list[int]:
        """Change so many rows; their ids."""
        touched = max(1, round(changed * 0.15))
        inserted = changed - 2 * touched
        new = range(self._next, self._next + inserted)
        updated = range(self._left - touched, self._left)
        deleted = range(self._left - 2 * touched, self._left - touched)
        self._next, self._left = new.stop, deleted.start
        t.write(self.table, batch(new.start, inserted, self.groups))
        t.sql(f"UPDATE {self.table} SET amount = amount + 1 WHERE id BETWEEN {updated.start} AND {updated.stop - 1}")
        t.sql(f"DELETE FROM {self.table} WHERE id BETWEEN {deleted.start} AND {deleted.stop - 1}")
        return [*new, *updated, *deleted]
