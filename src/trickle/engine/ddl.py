"""Columns and types in Spark's DDL: lists of columns are read by Spark's own parser, types are written."""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from trickle.algebra.names import quote
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


def spelled(kind: DataType) -> str:
    """A type as SQL spells it, whatever its fields are called.

    >>> from pyspark.sql.types import DecimalType, StringType
    >>> spelled(StructType().add("a b", ArrayType(MapType(StringType(), DecimalType(10, 2)))))
    'struct<`a b`: array<map<string, decimal(10,2)>>>'
    """
    match kind:
        case StructType():
            return f"struct<{', '.join(f'{quote(field.name)}: {spelled(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"array<{spelled(kind.elementType)}>"
        case MapType():
            return f"map<{spelled(kind.keyType)}, {spelled(kind.valueType)}>"
        case _:
            return kind.simpleString()
