"""Rows as SQL text: the pieces from which DML makes weighted rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from trickle.algebra.names import TableName, nearest, quote
from trickle.algebra.weights import FILE, ROW, WEIGHT
from trickle.errors import InvalidData, UnknownColumn
from trickle.sql import Assignment, SqlText


def columns_of(schema: StructType, alias: str) -> str:
    """All columns of a table under an alias."""
    return ", ".join(f"{quote(alias)}.{quote(name)}" for name in schema.names)


def sql_type(kind: DataType) -> str:
    """A type as Spark SQL spells it, whatever the names inside it.

    >>> sql_type(StructType.fromJson({"type": "struct", "fields": [
    ...     {"name": "a b", "type": "long", "nullable": True, "metadata": {}}]}))
    'STRUCT<`a b`: bigint>'
    """
    match kind:
        case StructType():
            inner = ", ".join(f"{quote(f.name)}: {sql_type(f.dataType)}" for f in kind.fields)
            return f"STRUCT<{inner}>"
        case ArrayType():
            return f"ARRAY<{sql_type(kind.elementType)}>"
        case MapType():
            return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
        case _:
            return kind.simpleString()


def assigned(assignments: Sequence[Assignment], schema: StructType, table: TableName) -> dict[str, SqlText]:
    """The values that a SET clause gives, by the table's own spelling of its columns."""
    by_key = {name.lower(): name for name in schema.names}
    values: dict[str, SqlText] = {}
    for assignment in assignments:
        name = by_key.get(assignment.column.lower())
        if name is None:
            close = nearest(assignment.column, schema.names)
            raise UnknownColumn(
                f"table {table} has no column {assignment.column!r}",
                hint=f"did you mean {close!r}?" if close else "columns: " + ", ".join(schema.names),
            )
        if name in values:
            raise InvalidData(f"column {name!r} is set twice")
        values[name] = assignment.value
    return values


def struct_of(schema: StructType, values: Mapping[str, str], alias: str | None) -> str:
    """A row as a struct in the table's types: the given SQL values, else the column of ``alias``, else NULL."""
    parts = []
    for field in schema.fields:
        if field.name in values:
            value = f"({values[field.name]})"
        else:
            value = "NULL" if alias is None else f"{quote(alias)}.{quote(field.name)}"
        parts.append(f"CAST({value} AS {sql_type(field.dataType)}) AS {quote(field.name)}")
    return f"struct({', '.join(parts)})"


def null_row(schema: StructType) -> str:
    """No row, as a struct of the table's type."""
    return f"CAST(NULL AS {sql_type(schema)})"


def weighted_pairs(pairs: str) -> str:
    """Weighted rows from a query of old row ``o``, new row ``n`` (structs) and the old row's place.

    A NULL struct gives no row. ``inline`` sees each pair once, so that a value like ``rand()`` is computed once. The
    new row names the old one's file: it goes where the rest of that file goes.
    """
    minus = f"struct(o AS row, CAST(-1 AS BIGINT) AS {WEIGHT}, {FILE}, {ROW})"
    plus = f"struct(n AS row, CAST(1 AS BIGINT) AS {WEIGHT}, {FILE}, CAST(NULL AS BIGINT) AS {ROW})"
    both = f"filter(array({minus}, {plus}), e -> e.row IS NOT NULL)"
    return f"SELECT row.*, {WEIGHT}, {FILE}, {ROW} FROM (SELECT inline({both}) FROM ({pairs}))"
