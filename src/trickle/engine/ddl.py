"""Column lists in Spark's DDL, read by Spark's own parser."""

from __future__ import annotations

import re

from pyspark.sql.types import DataType, StructType

from trickle.engine.failures import spark_errors
from trickle.engine.session import Engine
from trickle.errors import ParseError

_STRUCT = re.compile(r"\s*struct\s*<", re.IGNORECASE)


def parse_ddl(engine: Engine, ddl: str) -> StructType:
    """The schema of a column list such as ``id BIGINT NOT NULL, b STRUCT<a: INT>``; ``ParseError`` when wrong."""
    if not ddl.strip():
        raise ParseError("the column list is empty", hint="write names and types, such as: id BIGINT, name STRING")
    # The parser works through the process's session, so there has to be one.
    _ = engine.spark
    with spark_errors():
        parsed = DataType.fromDDL(ddl)
    # Spark also reads a lone type here.
    if not isinstance(parsed, StructType) or _STRUCT.match(ddl):
        raise ParseError(
            "a type without a column name",
            line=1,
            column=1,
            detail=ddl,
            hint="write names and types, such as: id BIGINT, name STRING",
        )
    return parsed
