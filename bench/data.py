"""The rows that benchmarks work on: made by Spark, the same on every run."""

from __future__ import annotations

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
