"""The rows of a stream table that lives in PostgreSQL, as Spark reads them.

One task reads it in one statement, so that a DataFrame shows one state. That state is the one when the rows are asked
for, and not when the DataFrame was made.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from trickle.algebra.names import quote
from trickle.catalog import databases
from trickle.catalog.outside import Hosted
from trickle.engine import spark_errors
from trickle.postgres.connect import connected
from trickle.postgres.tables import describe
from trickle.replicas.loading import lake_schema, nullable
from trickle.replicas.source import FORMAT, OPTION, PostgresSource, Range, plan_of
from trickle.warehouse import Warehouse


def frame(warehouse: Warehouse, hosted: Hosted, schema: StructType) -> DataFrame:
    """Its rows, in the columns of its query."""
    with warehouse.catalog.read() as tx:
        database = databases.by_id(tx, hosted.database_id)
    with connected(database.dsn) as connection:
        table = describe(connection, hosted.schema, hosted.table).with_columns(schema.names)
    plan = plan_of(database.dsn, None, table, [Range(table.schema, table.name, 0, None)])
    spark = warehouse.engine.spark
    with spark_errors():
        spark.dataSource.register(PostgresSource)
        rows = spark.read.format(FORMAT).schema(nullable(lake_schema(table))).option(OPTION, plan).load()
        return rows.select([F.col(quote(field.name)).cast(field.dataType) for field in schema.fields])
