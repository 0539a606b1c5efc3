"""The oracle for recursive queries: the user's own text on DuckDB, over the sources as Spark reads them.

Spark runs no UNION in a recursion, and what the engine makes of it must not judge itself.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from trickle.algebra.names import TableName
from trickle.engine import spark_errors
from trickle.engine.arrow import for_spark
from trickle.sql import SqlText
from trickle.tables.reading import Reading
from trickle.testing.connect import in_memory
from trickle.testing.spark_text import to_duckdb


def expected_rows(reading: Reading, text: SqlText, schema: StructType) -> pa.Table:
    """The rows of a query, with the given columns and types."""
    with in_memory() as duck:
        for name in text.tables:
            with spark_errors():
                duck.register(str(name), reading.frame(name).toArrow())
        rows = duck.execute(
            to_duckdb(text.text, lambda spelled: str(TableName.of(spelled.split("."))))
        ).to_arrow_table()
    return for_spark(rows.select(schema.names), schema)
