"""Rows handed to a classic session and taken from it, as Arrow.

PySpark does the same, and asks the JVM for a dozen settings and names on the way, which cost more than the rows where
these are few. The settings that matter are ours (``launch.NEEDED``), and names are asked for once.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.util import _load_from_socket

_BATCH_ROWS = 10_000
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


class Handing:
    """What is asked for once of a classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        context: Any = spark.sparkContext
        self._folder: str = context._temp_dir
        # PySpark hands rows over by a file too, unless files are to be encrypted.
        self.is_open: bool = not context._encryption_enabled and spark.conf.get(_LARGE, "false") != "true"
        self._utils: Any = context._jvm.PythonSQLUtils

    def give(self, table: pa.Table, schema: StructType) -> DataFrame:
        """A DataFrame of a table that has exactly the types of the schema."""
        descriptor, path = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table, max_chunksize=_BATCH_ROWS)
            batches = self._utils.readArrowStreamFromFile(path)
        finally:
            Path(path).unlink()
        return DataFrame(self._utils.toDataFrame(batches, schema.json(), self._spark._jsparkSession), self._spark)

    def take(self, frame: DataFrame) -> pa.Table:
        """All rows of a DataFrame."""
        answer = frame._jdf.collectAsArrowToPython()
        port, secret, server = answer[0], answer[1], answer[2]
        try:
            with _load_from_socket((port, secret), ArrowCollectSerializer()) as stream:
                batches = list(stream)
        finally:
            with unwrap_spark_exception():
                server.getResult()
        shape = to_arrow_schema(frame.schema, timezone="UTC")
        return pa.Table.from_batches(batches).cast(shape) if batches else shape.empty_table()
